"""What tests ask of the workers of a cluster."""

import gc
import time


def assert_clean(client):
    """Check that nothing of a fit is left on the workers."""

    def left(dask_worker):
        return len(dask_worker.state.actors), [str(key) for key in dask_worker.data]

    for _ in range(600):  # workers hear of it a moment later, or much later under load
        gc.collect()  # the traceback of an error that was raised may hold futures
        found = client.run(left)
        if all(one == (0, []) for one in found.values()):
            return
        time.sleep(0.1)
    raise AssertionError(f"left on the workers: {found}")
