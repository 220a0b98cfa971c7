use super::append::packed;
use crate::Code;
use crate::stream::Fence;

const FENCE: Fence<'static> =
    Fence { scripts: [b"guard", b"close"], keys: [b"log", b"{log}:@state"], compared: [b"token", b"7"] };

#[test]
fn a_transaction_has_the_scripts_around_its_batches() {
    let mut out = Vec::new();
    FENCE.open(&mut out);
    for (first, bits) in [(7, 0), ((5 << 10) | 3, 10)] {
        FENCE.add(&mut out, first, bits, 4).unwrap();
        out.extend_from_slice(b"data\r\n");
    }
    FENCE.close(&mut out, b"9", [("size", 8), ("count", 2), ("time", -1)]);
    let compared = ["2", "log", "{log}:@state", "token", "7"];
    let fields = ["end", "9", "size", "8", "count", "2", "time", "-1"];
    let expected = packed(&[
        &["MULTI"],
        &[&["EVAL", "guard"][..], &compared].concat(),
        &["XADD", "log", "7-1", "batch", "data"],
        &["XADD", "log", "5-3", "batch", "data"],
        &[&["EVAL", "close"][..], &compared, &fields].concat(),
        &["EXEC"],
    ]);
    assert_eq!(out, expected);
}

#[test]
fn what_has_no_id_is_refused() {
    for (first, bits) in [(-1, 0), (i64::MIN, 10), (7, 63), (7, 64)] {
        let refused = FENCE.add(&mut Vec::new(), first, bits, 4).unwrap_err();
        assert_eq!(refused.code, Code::OutOfRange);
    }
}
