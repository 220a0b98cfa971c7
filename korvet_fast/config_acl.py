"""The settings of ACLs: who decides what clients may do, and whom nothing is refused."""

from typing import Final

from korvet_fast.setting import Kind, Setting

ACL: Final = "acl"  # the authorizer of docs/security.md

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
)
