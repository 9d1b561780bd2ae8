"""`python -m jepsen.functions.traced_sim OPTIONS OF SIM`: a simulation whose JSON names the functions that ran."""

from __future__ import annotations

import contextlib
import io
import json
import sys

from jepsen.functions.tracing import install


def main(argv: list[str]) -> int:
    ran = install()
    from jepsen.__main__ import main as run  # only now: it imports production code

    with contextlib.redirect_stdout(io.StringIO()) as told:
        code = run(["sim", *argv])
    print(json.dumps({**json.loads(told.getvalue()), "functions": list(ran)}))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
