"""Subjects of certificates, and how Java writes them (`X500Principal.getName`)."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

KEY = generate_private_key(SECP256R1())


def certify(*rows: tuple[x509.ObjectIdentifier, str] | list[tuple[x509.ObjectIdentifier, str]]) -> bytes:
    """A certificate with this subject, in this order; a list is one RDN of several attributes."""
    rdns = [
        x509.RelativeDistinguishedName(
            x509.NameAttribute(oid, value) for oid, value in (row if isinstance(row, list) else [row])
        )
        for row in rows
    ]
    return sign(x509.Name(rdns))


def sign(subject: x509.Name, begins: datetime | None = None, ends: datetime | None = None) -> bytes:
    begins = begins or datetime.now(UTC)
    builder = x509.CertificateBuilder(ISSUER, subject, KEY.public_key(), 1, begins, ends or begins + timedelta(days=1))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


CN, OU, ORGANIZATION, CITY, STATE, COUNTRY = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.COUNTRY_NAME,
)
ISSUER = x509.Name([x509.NameAttribute(CN, "issuer")])

# A certificate (DER) and the name of its subject.
SUBJECTS = [
    (
        certify((COUNTRY, "DE"), (STATE, "Bayern"), (CITY, "Münc"), (ORGANIZATION, "Firma"), (OU, "IT"), (CN, "ann")),
        "CN=ann,OU=IT,O=Firma,L=Münc,ST=Bayern,C=DE",
    ),
    (
        certify((NameOID.DOMAIN_COMPONENT, "org"), (NameOID.USER_ID, "u1"), (NameOID.STREET_ADDRESS, "Weg 1")),
        "STREET=Weg 1,UID=u1,DC=org",
    ),
    (certify([(CN, "ann"), (OU, "Dev")], (ORGANIZATION, "Firma")), "O=Firma,CN=ann+OU=Dev"),
    (certify((CN, 'a,b+c"d\\e<f>g;h=i#j')), 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\#j'),
    (certify((CN, "  two  ")), "CN=\\ \\ two\\ \\ "),
    (certify((CN, "#1")), "CN=\\#1"),
    (certify((NameOID.EMAIL_ADDRESS, "a@b"), (CN, "ann")), "CN=ann,1.2.840.113549.1.9.1=#1603614062"),
    (certify((CN, "long" * 16)), "CN=" + "long" * 16),
]
