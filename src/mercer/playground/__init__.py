"""The playground: a local page in the browser that shows kernel machines at work.

``mercer play`` serves it. :mod:`~mercer.playground.server` answers the browser;
:mod:`~mercer.playground.session` runs what one open page asks for, in a thread in which
the newest request wins. The parts of the page are modules of their own:
:mod:`~mercer.playground.plane`, :mod:`~mercer.playground.solvers`,
:mod:`~mercer.playground.stream` and :mod:`~mercer.playground.digits`. The page itself
is plain JavaScript in the folder ``static``.
"""
