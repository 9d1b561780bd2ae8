"""Looking at the records of a topic: showing their bytes, choosing some of them, and finding them in the log.

Cores, which do no I/O: `json_text.py` and `json_path.py` (JSON whose numbers stay as they were written), `forms.py`
(bytes as JSON, text, hex or base64), `matching.py` (which records are wanted), `place.py` (where a search goes on),
`forward_page.py` and `newest_page.py` (what a page holds), `times.py` (how people write a time), `tail_buffer.py` (what
a slow reader of a live tail gets).
Shells read by an `AsyncConsumer` and nothing else, so that they work against Apache Kafka, too: `search.py`,
`newest.py`, `tail.py`.

No number is ever made a float, and a record is matched by its bytes and not by what is shown of it.
"""
