"""`korvet-fast doctor`: checks the store and the addresses of a broker, and says in plain words what it found."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
import uvloop

from korvet_fast.cli.broker_options import BrokerOptions, broker_options
from korvet_fast.cli.doctor.finding import Finding, Verdict, bad, warn
from korvet_fast.cli.doctor.network import examine_address, examine_descriptors
from korvet_fast.cli.doctor.peers import examine_peers
from korvet_fast.cli.doctor.store import examine_store, judge_copies
from korvet_fast.cli.doctor.topics import KEYS, judge_topics
from korvet_fast.cli.exposure import find_exposures
from korvet_fast.cli.open_files import file_limit_error
from korvet_fast.cli.worker_options import make_worker_options, worker_options
from korvet_fast.printable import printable
from korvet_fast.store.embedded.registry import read_keys
from korvet_fast.wire.dialects import TLS

_ONE_DISK = "One disk holds the only copy: what acks=all does not survive is the loss of that disk."
_COPIES = "Topics with min.insync.replicas above 1 survive the loss of a disk: `topic describe` shows who has copies."
COLOURS = {Verdict.GOOD: "green", Verdict.WARN: "yellow", Verdict.BAD: "red"}


@click.command()
@worker_options
@broker_options
def command(options: BrokerOptions, workers: int | None, worker_ports: range | None) -> None:
    """Check the store and the addresses that `serve` would use with the same options.

    Changes nothing. Exit code 1 if a broker could not run or could not keep its promises there.

    \b
    Examples:
      korvet-fast doctor
      korvet-fast doctor --store file:/var/lib/korvet --listen kafka://0.0.0.0:9092 --advertise kafka://10.1.2.3:9092
      korvet-fast doctor --workers auto
      korvet-fast doctor --store redis://localhost:6379
    """
    plans = make_worker_options(options, workers, worker_ports)
    exposures = list(find_exposures(options))
    findings, promised, cluster_id = _examine_place(options)
    findings += examine_peers(options.settings, options.listeners)
    findings += asyncio.run(_examine_addresses(plans, cluster_id))
    if any(listener.scheme.endswith(TLS) for listener in options.listeners):
        from korvet_fast.cli.doctor.certificates import examine_certificates  # cryptography takes long to import

        findings += examine_certificates(options.listeners, options.advertised, options.settings)
    if options.zookeeper is not None:
        from korvet_fast.cli.doctor.zookeeper import examine_zookeeper  # kazoo is an extra

        findings.append(asyncio.run(examine_zookeeper(options.zookeeper, options.settings)))
    findings += [warn(*exposure) for exposure in exposures]
    lack = file_limit_error(len(options.listeners), len(plans))
    findings.append(bad("files", lack) if lack else examine_descriptors(options.settings.number("max.connections")))
    for finding in findings:
        mark = click.style(f"{finding.verdict.value:5}", fg=COLOURS[finding.verdict])
        click.echo(f"{mark} {finding.subject:12} {printable(finding.sentence)}")
    click.echo()
    for line in promised:
        click.echo(printable(line))
    if any(finding.verdict is Verdict.BAD for finding in findings):
        raise click.exceptions.Exit(1)


def _examine_place(options: BrokerOptions) -> tuple[list[Finding], list[str], str | None]:
    """The findings about the store, what it promises, and the id of the cluster that uses it.

    That is "" if none does, None if the store could not be asked.
    """
    durability = options.settings.text("durability")
    copies = options.settings.number("min.insync.replicas")
    policy = options.settings.text("log.cleanup.policy")
    if isinstance(options.place, Path):
        ground = examine_store(options.place)
        topics = judge_topics(read_keys(options.place, KEYS), policy)
        peers = bool(options.settings.text("replication.peers"))
        findings = [*ground.findings, *([] if peers else judge_copies(copies)), *topics]
        return findings, promise(durability, kept=ground.kept, peers=peers), ground.cluster_id
    from korvet_fast.cli.doctor.redis import examine_redis  # redis-py takes a fifth of a second to import

    answer = uvloop.run(examine_redis(options.place, durability, copies))
    return [*answer.findings, *judge_topics(answer.topics, policy)], answer.promise, answer.cluster_id


async def _examine_addresses(plans: Sequence[BrokerOptions], cluster_id: str | None) -> list[Finding]:
    """Of each worker. What several of them tell, as they are brokers of one cluster, is told once."""
    findings: dict[Finding, None] = {}
    for plan in plans:
        for listener, told in zip(plan.listeners, plan.advertised, strict=True):
            findings.update(dict.fromkeys(await examine_address(listener, told, cluster_id)))
    return list(findings)


def promise(durability: str, *, kept: bool, peers: bool = False) -> list[str]:
    """The failures that acknowledged records survive, in plain words.

    `kept`: flushed data survives a power failure. `peers`: brokers keep copies of each other's files.
    """
    if durability == "written":
        last = "the end of the broker, kill -9 included, but not a power failure or a crash of the machine"
        advice = "Set durability=fsync (for all topics, or for one) to have acks=all wait for the disk."
    elif kept:
        last = "a power failure too: it is given after the records are flushed to the disk"
        advice = _COPIES if peers else _ONE_DISK
    else:
        last = "the end of the broker, but not of the machine: see `file system` above"
        advice = "Put the store on a disk to have it survive that as well."
    return [
        "What an acknowledgement survives:",
        "  acks=0    nothing: no answer is sent",
        "  acks=1    the end of the broker, kill -9 included: the operating system has the records",
        f"  acks=all  {last}",
        advice,
    ]
