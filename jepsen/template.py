"""`python -m jepsen.template`: has imported everything, and forks one child for each simulation.

A simulation needs about a second to import and another half to take its heap apart. A child needs neither: it begins
with what the template has imported, and ends without destructors. It begins in the same state as every other, so its
trace is the one of a process of its own, and it cannot affect another one.

Reads one line of JSON for each job: {"options", "processor_s"}, the options of `jepsen`, and after how many seconds of
processor time SIGXCPU ends the child. Writes two lines for each: the child's process id, and what came of it: {"code",
"out", "errors"}. `--noting`: "functions" in the child's result names those that ran.

When its input ends, the process that gave the jobs has ended, in whatever way: the child is killed, and the template
ends.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import resource
import selectors
import signal
import sys
import tempfile
import traceback
from typing import IO, NoReturn

from jepsen.functions.tracing import install

_CRASHED = 70  # the code of a child that raised
_ERRORS_CHARACTERS = 8_000  # of the end of standard error


def main(argv: list[str]) -> int:
    ran = install() if "--noting" in argv else None
    import jepsen.__main__  # noqa: F401 - only now: it imports the functions to note

    gc.collect()
    gc.freeze()  # so that no child looks at, and thereby copies, what the template has
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            runs, held = os.pipe()  # only the child holds the second end: the first one ends with it
            child = os.fork()
            if child == 0:
                job = json.loads(line)
                _, most = resource.getrlimit(resource.RLIMIT_CPU)
                resource.setrlimit(resource.RLIMIT_CPU, (job["processor_s"], most))
                _be_child(job["options"], out, errors, ran)
            os.close(held)
            _tell({"child": child})
            has_ended = _ends_before_input(runs)
            os.close(runs)
            if not has_ended:
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if not has_ended:
                return 1
            code, tail = os.waitstatus_to_exitcode(status), _text(errors)[-_ERRORS_CHARACTERS:]
            _tell({"code": code, "out": _text(out), "errors": tail})
    return 0


def _ends_before_input(runs: int) -> bool:
    """Whether the child ends while somebody waits for it: there is no next job before this one is told."""
    with selectors.DefaultSelector() as selector:
        for end in (runs, sys.stdin.fileno()):
            selector.register(end, selectors.EVENT_READ)
        return any(key.fd == runs for key, _ in selector.select())


def _tell(what: dict[str, object]) -> None:
    print(json.dumps(what), flush=True)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _be_child(options: list[str], out: IO[bytes], errors: IO[bytes], ran: dict[str, None] | None) -> NoReturn:
    code = _CRASHED
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, shown in ((nothing, 0), (out.fileno(), 1), (errors.fileno(), 2)):
            os.dup2(descriptor, shown)
        code = _run(options, ran)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else _CRASHED
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(options: list[str], ran: dict[str, None] | None) -> int:
    from jepsen.__main__ import main as run

    if ran is None:
        return run(options)
    with contextlib.redirect_stdout(io.StringIO()) as told:
        code = run(options)
    print(json.dumps({**json.loads(told.getvalue()), "functions": list(ran)}))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
