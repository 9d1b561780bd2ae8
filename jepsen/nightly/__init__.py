"""`./dev nightly`: everything that takes hours, in slices by turns, with one report.

`work.py` says what a kind of work and a slice are, `table.py` lists the kinds. `plan.py` decides which slice is next,
`findings.py` reads what a slice said, `night.py` goes on until there is nothing left or the time is over; these have no
clock and start nothing. `state.py` is what is kept, `report.py` the page that people read. `machine.py` and `guard.py`
run the slices, `files.py` keeps the state, `command.py` has the options.
"""
