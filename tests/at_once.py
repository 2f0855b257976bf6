"""Run functions at once, on threads that do not keep a failed test alive."""

import threading

PATIENCE = 20.0  # seconds; what hangs, hangs for good


def at_once(*functions):
    """Start all functions together on a thread each; return what they found, or raise what the first one raised."""
    found, raised, start = [None] * len(functions), [], threading.Barrier(len(functions))

    def run(place):
        try:
            start.wait(PATIENCE)
            found[place] = functions[place]()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "threads wait for each other"
    if raised:
        raise raised[0]
    return found
