"""ElectLeaders (key 43), version 2, at this listener: the leader of the metadata log, and of nothing else.

Who may name leaders of topics is said by ACLs, and these are known as soon as the metadata log has a leader.
"""

from korvet_fast.core.replication.peers import METADATA_LOG
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.api.elect_leaders import elect_leaders
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Values
from korvet_fast.wire.replica.session import Session

_WHY = "a listener replica:// names the leader of @registry 0 only; name those of topics at a listener for clients"


async def elect_registry_leader(session: Session, request: Values, version: int) -> Values:
    places = request["topic_partitions"] or ()
    if [f"{row['topic']}:{index}" for row in places for index in row["partitions"]] == [METADATA_LOG]:
        return await elect_leaders(session, request, version)
    code, message = translate(KorvetError(Errors.CLUSTER_AUTHORIZATION_FAILED, _WHY))
    answers = [
        {
            "topic": row["topic"],
            "partition_result": [
                {"partition_id": index, "error_code": code, "error_message": message} for index in row["partitions"]
            ],
        }
        for row in places
    ]
    return {"error_code": code, "replica_election_results": answers}
