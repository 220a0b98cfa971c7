"""The settings of OAUTHBEARER: whose tokens let clients in, and what a token has to claim."""

from typing import Final

from korvet_fast.setting import Kind, Setting

UNSECURED: Final = "sasl.oauthbearer.unsecured.tokens.for.testing"
_ANY: Final = r"[^\0]*"

OAUTH: Final = (
    Setting(
        "sasl.oauthbearer.jwks.endpoint.url",
        Kind.STRING,
        "",
        "Where the provider of tokens publishes its keys (JWKS). By https only, and nothing that it refers to is read.",
        choices=("https://login.example.org/keys",),
        pattern=r"(https://[^\s@#]+)?",
    ),
    Setting(
        "https.ca.location",
        Kind.STRING,
        "",
        "A PEM file with the authorities of that address. Without it, those of the system.",
        choices=("/etc/korvet/provider-ca.pem",),
        pattern=_ANY,
    ),
    Setting(
        "sasl.oauthbearer.expected.issuer",
        Kind.STRING,
        "",
        "What the claim iss of a token has to be; any without it.",
        choices=("https://login.example.org/",),
        pattern=_ANY,
    ),
    Setting(
        "sasl.oauthbearer.expected.audience",
        Kind.LIST,
        "",
        "Of these a token's claim aud has to name one. Without it, a token that is made for an audience is refused.",
        choices=("kafka", "kafka,orders"),
        pattern=_ANY,
    ),
    Setting(
        "sasl.oauthbearer.sub.claim.name",
        Kind.STRING,
        "sub",
        "The claim that has the client's name: User:NAME is its principal.",
        choices=("sub", "azp"),
        pattern=r"[^\0]+",
    ),
    Setting(
        "sasl.oauthbearer.scope.claim.name",
        Kind.STRING,
        "scope",
        "The claim that has the scopes. A token where it is neither a text nor a list of texts is refused.",
        choices=("scope", "scp"),
        pattern=r"[^\0]+",
    ),
    Setting(
        "sasl.oauthbearer.clock.skew.seconds",
        Kind.INT,
        30,
        "How far the clocks of provider and broker may differ: a token is good so much longer, and so much earlier.",
        highest=600,
    ),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Kind.LONG,
        3_600_000,
        "Time after which the provider's keys are fetched again; a token with an unknown key has that done at once.",
        1000,
    ),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Kind.LONG,
        100,
        "Time from a fetch that failed to the next one; it doubles.",
        1,
    ),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Kind.LONG,
        10_000,
        "The longest such time.",
        1,
    ),
    Setting(
        UNSECURED,
        Kind.BOOLEAN,
        False,
        "Take tokens that nobody has signed, and no others: everybody is who they say. For tests of clients only.",
    ),
)
