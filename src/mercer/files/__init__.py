"""Model files, and the formats of LIBSVM."""

from mercer.files.libsvm import export_libsvm
from mercer.files.model_files import load, read_header, save

__all__ = ["export_libsvm", "load", "read_header", "save"]
