"""A cleaner's process as the node's loop sees it: a `Runner` (quorumlog_broker/cleaning/runner.py).

It is started for the first round and ends when no round is due for a while, so that an idle node holds no map. A round
that is given up ends the process, because nothing else would stop it at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from pathlib import Path

import quorumlog
import quorumlog_storage
from quorumlog_broker.cleaning.runner import CleanerDied, Read
from quorumlog_storage.cleaning.spec import RoundDone, RoundSpec, Step
from quorumlog_storage.edge.cleaner import encode_spec, step_of

MAX_LINE_BYTES = 16 << 20  # of a step: a group of 100,000 segments
END_WAIT_S = 5.0

# So that the process runs the same code, wherever it is started: in a checkout the packages have folders of their own.
_ROOTS = [str(Path(package.__path__[0]).parent) for package in (quorumlog, quorumlog_storage)]
_MAIN = "import sys; sys.path[:0] = sys.argv[1:3]; from quorumlog_storage.edge.cleaner import main; main()"


class CleanerProcess:
    """Used on the loop, for one round at a time."""

    def __init__(self, form: str = "either", python: str = sys.executable) -> None:
        """form: of the work with keys, one of `quorumlog_storage.edge.cleaner.FORMS`; for measurements."""
        self._python, self._form = python, form
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """None while there is no process."""
        return None if self._process is None else self._process.pid

    async def steps(self, spec: RoundSpec, _read: Read) -> AsyncGenerator[Step, None]:
        process = await self._started()
        assert process.stdin is not None and process.stdout is not None
        is_over = False
        try:
            process.stdin.write(encode_spec(spec))
            while not is_over:
                line = await process.stdout.readline()
                if not line.endswith(b"\n"):
                    raise CleanerDied(await process.wait())
                step = step_of(json.loads(line))
                if isinstance(step, Exception):
                    is_over = True
                    raise step
                is_over = isinstance(step, RoundDone)
                yield step
        finally:
            if not is_over:
                await self._end()

    async def rest(self) -> None:
        await self._end()

    async def _started(self) -> Process:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *(self._python, "-P", "-c", _MAIN, *_ROOTS, self._form),
                stdin=PIPE,
                stdout=PIPE,
                limit=MAX_LINE_BYTES,
                start_new_session=True,  # Ctrl-C is the node's to handle; it then ends this process
            )
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(END_WAIT_S):
            await process.wait()
