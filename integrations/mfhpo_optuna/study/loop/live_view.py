"""A view of several lines that stays in its place on a terminal, below Optuna's log."""

import logging
import sys

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mfhpo_optuna.study.loop.state import Progress, ends_in

_BAR_WIDTH = 32


class LiveView:
    """Shows progress until it is ended; what Optuna logs meanwhile appears above it."""

    def __init__(self) -> None:
        self._live = Live(console=Console(stderr=True), auto_refresh=False)
        terminal = sys.stderr
        self._live.start()
        # What goes to the terminal itself would be written into the view.
        self._handlers = [
            handler
            for handler in logging.getLogger("optuna").handlers
            if isinstance(handler, logging.StreamHandler) and handler.stream is terminal
        ]
        self._terminal = terminal
        for handler in self._handlers:
            handler.setStream(sys.stderr)  # the view's own, which writes above it

    def show(self, progress: Progress, seconds_left: float | None) -> None:
        """Show it in place of the last state."""
        self._live.update(view(progress, seconds_left), refresh=True)

    def end(self) -> None:
        """Leave the last state where it is, and go on below it."""
        for handler in self._handlers:
            handler.setStream(self._terminal)
        self._live.stop()


def view(progress: Progress, seconds_left: float | None) -> Panel:
    """What is shown: a line for each thing that matters, and a bar of what was spent."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    table.add_row("configurations", Text(progress.configurations))
    table.add_row("leader", Text(progress.leader or "none yet", style="bold"))
    table.add_row("spent", Text(progress.spending))
    if progress.total is not None:
        total, spent = progress.total, min(progress.spent, progress.total)
        table.add_row("", ProgressBar(total=total, completed=spent, width=_BAR_WIDTH))
    when = ends_in(seconds_left)
    if when:
        table.add_row("", Text(when))
    return Panel(table, title=Text(progress.phase, style="bold"), title_align="left", expand=False)
