import pytest

from studies import reproduce


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory):
    """One quick run of all studies on the sample, without any data folder."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MERCER_DATA", raising=False)
        return reproduce(out=folder, quick=True, sample=True, progress=False)
