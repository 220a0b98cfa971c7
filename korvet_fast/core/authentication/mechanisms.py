"""The mechanisms of SASL by name: what each checks its clients against."""

from korvet_fast.core.authentication.oauth_server import OAuthBearerServer, TokenVerifier
from korvet_fast.core.authentication.oauthbearer import OAUTHBEARER
from korvet_fast.core.authentication.sasl_server import SERVERS, CannotAuthenticate, Offload, SaslServer
from korvet_fast.core.authentication.users import Users


def make_server(mechanism: str, users: Users, tokens: TokenVerifier | None, offload: Offload) -> SaslServer:
    """The broker's side of one login by an enabled mechanism. `tokens`: who judges those of OAUTHBEARER.

    Raises `CannotAuthenticate` where nobody does.
    """
    if mechanism != OAUTHBEARER:
        return SERVERS[mechanism](users, offload)
    if tokens is None:
        raise CannotAuthenticate("nothing says which tokens of OAUTHBEARER are good")
    return OAuthBearerServer(tokens, offload)
