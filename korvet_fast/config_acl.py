"""The settings of ACLs: who decides what clients may do, whom nothing is refused, and where that is written."""

from typing import Final

from korvet_fast.setting import Kind, Setting

ACL: Final = "acl"  # the authorizer of docs/security.md
HTTP_PRINCIPAL: Final = "http.token.principal"
AUDIT_FILE: Final = "audit.log.file"
AUDIT_ALLOWED: Final = "audit.log.allowed"

ACLS: Final = (
    Setting(
        "authorizer",
        Kind.STRING,
        "none",
        "Who decides what a client may do: nobody, so that everybody may do everything, or ACLs as Kafka's"
        " StandardAuthorizer reads them. The same on every broker of a cluster.",
        choices=("none", ACL),
    ),
    Setting(
        "super.users",
        Kind.STRING,
        "",
        "Principals to whom no ACL applies, with semicolons between them: whoever adds the first ACL is one of them.",
        choices=("User:admin;User:CN=operator",),
        pattern=r"[^\0]*",
    ),
    Setting(
        "allow.everyone.if.no.acl.found",
        Kind.BOOLEAN,
        False,
        "Whether everybody may use the resources that no ACL is about.",
    ),
    Setting(
        HTTP_PRINCIPAL,
        Kind.STRING,
        "User:http",
        "Who reads and changes something with the page on a listener http://, with the token of http.token.file: ACLs"
        " say what this principal may do.",
        choices=("User:operator",),
        pattern=r"[^\0:]+:[^\0]+",
    ),
    Setting(
        AUDIT_FILE,
        Kind.STRING,
        "",
        "A file to which a line of JSON is appended for each request that is denied, each login that fails and each"
        " change that the page makes. Nothing is written without it.",
        choices=("/var/log/korvet/audit.log",),
        pattern=r"[^\0]*",
    ),
    Setting(
        AUDIT_ALLOWED,
        Kind.BOOLEAN,
        False,
        "Whether the audit log has a line for what an authorizer allows, too: one for each resource of each request.",
    ),
)
