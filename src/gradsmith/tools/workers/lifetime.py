"""How long processes live: a worker no longer than its parent, nor its children.

A worker leads a session of its own, so that Ctrl-C is for its parent, and all that its
work starts can be ended with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

IS_LINUX = sys.platform == "linux"
_HOME = str(Path(__file__).parents[2])  # the package
_HERE = str(Path(__file__).parent)
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of prctl


def lead_session() -> None:
    if hasattr(os, "setsid"):
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _prctl(option: int, value: int) -> bool:
    try:
        return ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0
    except (OSError, AttributeError, TypeError):
        return False


def adopt_orphans() -> None:
    """Become the parent of what a child leaves behind, in Linux."""
    if IS_LINUX:
        _prctl(_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int, channel: Any) -> None:
    """End this process once its parent is gone."""
    if IS_LINUX and _prctl(_SET_PDEATHSIG, signal.SIGKILL):
        if os.getppid() != parent:  # it was quicker
            os._exit(1)
        return
    threading.Thread(target=_watch, args=(channel,), daemon=True).start()


def _watch(channel: Any) -> None:
    """Wait until nobody is at the other end."""
    try:
        from select import poll
    except ImportError:
        from multiprocessing import parent_process

        parent = parent_process()
        if parent is None:
            return
        parent.join()
    else:
        watch = poll()
        watch.register(channel.fileno(), 0)  # which leaves that it is hung up
        watch.poll()
    end_group(os.getpid())
    os._exit(1)


def end_group(pid: int) -> None:
    """Kill a process and all of its group."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError, OSError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def end_orphans(known: set[int], ended: int | None) -> None:
    """Kill adopted children: of a session that has ended, or all if none is `known`."""
    while orphans := [
        pid for pid in _children() - known if _is_over(pid, known, ended)
    ]:
        for pid in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _is_over(pid: int, known: set[int], ended: int | None) -> bool:
    try:
        return not known or os.getsid(pid) == ended
    except ProcessLookupError:
        return True


def _children() -> set[int]:
    try:
        words = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return set()
    return {int(word) for word in words.split()}


def end_forks_at_home() -> None:
    """Let a fork of the user's code end where it would return to ours.

    Else each child would go on with the check, fork again, and give its own answer.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_fork)


def _in_fork() -> None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(_HOME):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(_HERE):
        return  # a worker that we start

    def profile(leaving: FrameType, event: str, _: Any) -> None:
        if event == "return" and leaving.f_back is frame:
            os._exit(0)

    sys.setprofile(profile)
