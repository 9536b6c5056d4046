"""How training code talks with the Berth scheduler; outside of Berth it does nothing.

    with berth.training() as run:
        for batch in run.steps(loader):
            ...
            run.report(loss=loss, batch=len(batch))
"""

from berth._run import EXIT_CODE, Run, Stop, training

__all__ = ["EXIT_CODE", "Run", "Stop", "training"]
__version__ = "0.1.0"
