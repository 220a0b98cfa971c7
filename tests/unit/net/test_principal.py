"""Names of clients: Kafka's rules, with the examples of its own tests."""

import pytest
from cryptography import x509

from korvet_fast.errors import SettingError
from korvet_fast.net.principal import PrincipalRules
from subjects import CITY, CN, COUNTRY, ORGANIZATION, OU, STATE, certify

KAFKAS = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    r"RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        # SslPrincipalMapperTest.testSslPrincipalMapper
        (KAFKAS, ((COUNTRY, "DE"), (OU, "ServiceUsers"), (CN, "Duke")), "duke"),
        (
            KAFKAS,
            ((COUNTRY, "US"), (STATE, "UN"), (CITY, "UN"), (ORGANIZATION, "UN"), (OU, "SME"), (CN, "duke")),
            "duke@sme",
        ),
        (KAFKAS, ((OU, "JavaSoft"), (CN, "duke")), "DUKE"),
        (KAFKAS, ((ORGANIZATION, "UN"), (OU, "UN")), "OU=UN,O=UN"),
        # testUnterminated and others: a slash and a comma inside
        (r"RULE:^CN=(.*)$/a\/b,$1/", ((CN, "x"),), "a/b,x"),
        (r"RULE:^CN=(.*)$/$1$2/", ((CN, "x"),), "x$2"),
        (r"RULE:^CN=(.*)$/\$1/", ((CN, "x"),), "$1"),
        (r"RULE:CN=/ann/,RULE:^CN=bob$/bert/", ((CN, "bob"),), "bert"),
        (r"RULE:^CN=(a)?(b)?$/[$1$2]/", ((CN, "b"),), "[b]"),
    ],
)
def test_kafkas_rules(rules: str, subject: tuple[tuple[x509.ObjectIdentifier, str], ...], name: str) -> None:
    assert PrincipalRules(rules).name(certify(*subject)) == f"User:{name}"


def test_a_certificate_that_no_rule_fits_has_no_name() -> None:
    with pytest.raises(ValueError, match=r"no rule of ssl\.principal\.mapping\.rules fits CN=eve"):
        PrincipalRules("RULE:^CN=ann$/ann/").name(certify((CN, "eve")))
    many = [(OU, "x" * 60)] * 70
    with pytest.raises(ValueError, match="has 4,479 characters"):
        PrincipalRules("DEFAULT").name(certify(*many))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("DEFAULT,nothing", "'nothing' is no rule"),
        ("RULE:^CN=(.*)$/$1", "is no rule"),
        ("RULE:^CN=(.*)$/$1/X", "is no rule"),
        ("default", "'default' is no rule"),
        ("RULE:^CN=(.*$/$1/", "is no regular expression of linear time"),
        (r"RULE:^CN=(.)\1$/$1/", "is no regular expression of linear time"),
        ("RULE:^CN=(?=a)$/a/", "is no regular expression of linear time"),
    ],
)
def test_rules_that_cannot_be(rules: str, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        PrincipalRules(rules)
    assert words in str(caught.value)


def test_a_rule_that_backtracks_takes_no_time_where_it_does_not_fit() -> None:
    rules = PrincipalRules("RULE:^CN=(a+)+b$/b/,DEFAULT")
    assert rules.name(certify((CN, "a" * 60))) == "User:CN=" + "a" * 60  # `re` alone would need ages
