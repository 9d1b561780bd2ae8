"""One request and one response of every API of groups: as Kafka's JSON, and as our messages in each version.

`python -m tests.wire.group_examples | java -cp "JARS/*:DIRECTORY" GroupMessages > tests/wire/golden/group_messages.txt`
writes the golden bytes with the classes of Kafka itself (tests/wire/golden/GroupMessages.java).
"""

from __future__ import annotations

import json

from tests.wire.consumer_examples import CONSUMER_DESCRIBE, CONSUMER_HEARTBEAT
from tests.wire.example import of_version
from tests.wire.group_admin_examples import DELETE, DESCRIBE, LIST
from tests.wire.member_examples import FIND, HEARTBEAT, JOIN, LEAVE, SYNC
from tests.wire.offset_examples import COMMIT, FETCH, OFFSET_DELETE

EXAMPLES = (
    *(FIND, JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH, OFFSET_DELETE, DESCRIBE, LIST, DELETE),
    *(CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE),
)

if __name__ == "__main__":
    for one in EXAMPLES:
        for number in range(one.oldest, one.newest + 1):
            for side, values in (("Request", one.request), ("Response", one.response)):
                print(f"{one.name}{side} {number} {json.dumps(of_version(values(number), number))}")
