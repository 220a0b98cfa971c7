"""Certificates: subjects as Java writes them, times, hostile DER."""

from base64 import b64encode
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.net.x509 import read_pem, read_period, read_subject
from subjects import CN, COUNTRY, ORGANIZATION, SUBJECTS, certify, sign


@pytest.mark.parametrize(
    ("certificate", "expected"),
    SUBJECTS,
    ids=map(str, range(len(SUBJECTS))),  # the certificates are others in each process
)
def test_subjects_as_java_writes_them(certificate: bytes, expected: str) -> None:
    assert read_subject(certificate) == expected


def test_subjects_that_java_cannot_read() -> None:
    """None at all, and UTF-16, which Java takes for UTF-8."""
    assert read_subject(sign(x509.Name([]))) == ""
    assert read_subject(sign(x509.Name([x509.NameAttribute(CN, "ä€", _ASN1Type.BMPString)]))) == "CN=ä€"


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (datetime(1950, 1, 1, tzinfo=UTC), datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (datetime(2000, 2, 29, 1, 2, 3, tzinfo=UTC), datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (datetime(2050, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_times_before_and_after_2050(begins: datetime, ends: datetime) -> None:
    """They are written in two ways."""
    assert read_period(sign(x509.Name([]), begins, ends)) == (begins, ends)


def test_certificates_are_found_whatever_else_is_in_a_file() -> None:
    made = [certify((CN, name)) for name in ("one", "two", "three")]
    one, two, three = (x509.load_der_x509_certificate(each).public_bytes(Encoding.PEM).decode() for each in made)
    two, three = two.replace("CERT", "X509 CERT"), three.replace("CERT", "TRUSTED CERT")  # as OpenSSL reads them, too
    key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    assert read_pem(f"{key}Subject: ä\n{one}{two}{key}\r\n{three}") == made


def test_behind_a_trusted_certificate_may_stand_what_it_is_good_for() -> None:
    """As `openssl x509 -trustout -addtrust serverAuth -setalias one` writes it."""
    plain = certify((CN, "one"))
    trust = bytes.fromhex("3011 300a06082b06010505070301 0c036f6e65")
    text = b64encode(plain + trust).decode()
    (certificate,) = read_pem(f"-----BEGIN TRUSTED CERTIFICATE-----\n{text}\n-----END TRUSTED CERTIFICATE-----\n")
    assert read_subject(certificate) == "CN=one"
    assert read_period(certificate) == read_period(plain)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_subject, read_period):
        with suppress(ValueError):
            assert read(data) is not None


@given(st.integers(0, 399), st.integers(0, 255))
def test_a_damaged_certificate_is_read_or_refused(place: int, byte: int) -> None:
    damaged = bytearray(certify((COUNTRY, "DE"), (ORGANIZATION, "Firma"), (CN, "ann")))
    damaged[place % len(damaged)] = byte
    for read in (read_subject, read_period):
        with suppress(ValueError):
            assert read(bytes(damaged)) is not None
