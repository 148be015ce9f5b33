//! The table: every case of `cases/broker.json` is a check here or has the reason why not beside it.

mod addresses;
mod framing;
mod functions;
mod headers;
mod hosts;
mod responses;
mod times;
pub mod tunnels;
mod web;

use crate::support::Side;
use std::collections::BTreeSet;
use std::pin::Pin;

type Check = fn(Side) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! table {
    ($($id:literal => $check:path,)*) => { const CHECKS: &[(&str, Check)] = &[$(($id, |side| Box::pin($check(side)))),*]; };
}

table! {
    "H-01" => hosts::h01, "H-02" => hosts::h02, "H-04" => hosts::h04, "H-05" => hosts::h05, "H-07" => hosts::h07, "H-08" => hosts::h08,
    "H-10" => hosts::h10, "H-11" => hosts::h11, "H-13" => hosts::h13, "H-14" => hosts::h14, "H-16" => hosts::h16, "H-17" => hosts::h17,
    "H-19" => hosts::h19, "H-20" => hosts::h20, "H-22" => hosts::h22, "H-23" => hosts::h23,
    "PF-01" => hosts::pf01, "PF-02" => hosts::pf02, "PF-04" => hosts::pf04, "PF-05" => hosts::pf05, "PF-07" => hosts::pf07,
    "PF-08" => hosts::pf08, "PF-09" => hosts::pf09, "PF-10" => hosts::pf10, "PF-11" => hosts::pf11,
    "A-01" => addresses::a01, "A-02" => addresses::a02, "A-04" => addresses::a04, "A-05" => addresses::a05, "A-07" => addresses::a07,
    "A-08" => addresses::a08, "A-10" => addresses::a10,
    "N-01" => addresses::n01, "N-02" => addresses::n02, "N-04" => addresses::n04, "N-05" => addresses::n05, "N-07" => addresses::n07,
    "N-08" => addresses::n08,
    "M-01" => addresses::m01, "M-02" => addresses::m02, "M-04" => addresses::m04, "M-05" => addresses::m05, "M-06" => addresses::m06,
    "C-01" => tunnels::c01, "C-02" => tunnels::c02, "C-04" => tunnels::c04, "C-05" => tunnels::c05, "C-07" => tunnels::c07,
    "C-08" => tunnels::c08, "C-10" => tunnels::c10, "C-11" => tunnels::c11, "C-13" => tunnels::c13, "C-14" => tunnels::c14,
    "C-16" => tunnels::c16, "C-17" => tunnels::c17,
    "F-01" => framing::f01, "F-02" => framing::f02, "F-04" => framing::f04, "F-05" => framing::f05, "F-07" => framing::f07,
    "F-08" => framing::f08, "F-10" => framing::f10, "F-11" => framing::f11, "F-13" => framing::f13, "F-14" => framing::f14,
    "F-16" => framing::f16, "F-17" => framing::f17, "F-19" => framing::f19, "F-20" => framing::f20, "F-22" => framing::f22,
    "F-23" => framing::f23, "F-25" => framing::f25,
    "B-01" => headers::b01, "B-02" => headers::b02, "B-04" => headers::b04, "B-05" => headers::b05, "B-06" => headers::b06,
    "B-07" => headers::b07, "B-08" => headers::b08, "B-11" => headers::b11, "B-13" => headers::b13,
    "R-01" => responses::r01, "R-01 (silence)" => responses::expect_without_a_word_from_the_upstream, "R-02" => responses::r02, "R-04" => responses::r04, "R-05" => responses::r05, "R-07" => responses::r07,
    "R-08" => responses::r08, "R-10" => responses::r10, "R-11" => responses::r11, "R-13" => responses::r13, "R-14" => responses::r14,
    "R-16" => responses::r16, "R-17" => responses::r17, "R-19" => responses::r19, "R-20" => responses::r20, "R-21" => responses::r21,
    "L-01" => headers::l01, "L-02" => headers::l02, "L-04" => headers::l04, "L-05" => headers::l05, "L-07" => headers::l07,
    "L-08" => headers::l08,
    "J-01" => functions::j01, "J-02" => functions::j02, "J-04" => functions::j04, "J-05" => functions::j05, "J-07" => functions::j07,
    "J-08" => functions::j08, "J-10" => functions::j10,
    "T-01" => times::t01, "T-02" => times::t02, "T-04" => times::t04, "T-08" => times::t08, "T-10" => times::t10, "T-13" => times::t13,
    "T-14" => times::t14,
    "W-01" => web::w01, "W-02" => web::w02, "W-04" => web::w04, "W-07" => web::w07,
    "D-01" => web::d01, "D-02" => web::d02, "D-07" => web::d07, "D-08" => web::d08,
}

/// Elsewhere, or nowhere, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "B-10",
        "query-string keys are not offered: a key in a URL ends in logs",
    ),
    (
        "L-10",
        "out of scope by nature: an upstream may keep what it was sent",
    ),
    (
        "J-11",
        "a measurement, not a check: bench/broker.mjs, docs/broker.md",
    ),
    (
        "T-05",
        "broker_load.rs: it needs thousands of descriptors and a process of its own",
    ),
    (
        "T-07",
        "broker_load.rs: it lowers the process's limit on descriptors",
    ),
    (
        "T-11",
        "rules cannot be changed at run time; a function's value can, and a new broker is cheap",
    ),
    (
        "W-05",
        "Node's agent for the proxy variables: __test__/broker-clients.test.ts",
    ),
    (
        "D-04",
        "a container cannot forge addresses: it has no capability at all (__test__/docker-cases.test.ts)",
    ),
    (
        "D-05",
        "Docker's resolver gives a container no outside name (__test__/docker-egress.test.ts); engines before 25.0.5 are refused",
    ),
    ("D-10", "Docker Desktop: egress is refused there by the sandbox"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_both_listeners() {
    let only = std::env::var("CROFT_CASE").ok();
    let mut failed = Vec::new();
    for &(id, check) in CHECKS
        .iter()
        .filter(|(id, _)| only.as_deref().is_none_or(|o| *id == o))
    {
        for side in [Side::Main, Side::Extra] {
            let limit = std::time::Duration::from_secs(60);
            let run = tokio::spawn(async move { tokio::time::timeout(limit, check(side)).await });
            if !matches!(run.await, Ok(Ok(()))) {
                failed.push(format!("{id} on the {side:?} listener"));
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn every_case_is_checked_or_left_out_for_a_reason() {
    let Ok(text) = std::fs::read_to_string("../shared/cases/broker.json") else {
        return;
    };
    let cases: serde_json::Value = serde_json::from_str(&text).unwrap();
    let wanted: BTreeSet<&str> = cases
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["id"].as_str().unwrap())
        .collect();
    let known: Vec<&str> = CHECKS
        .iter()
        .map(|(id, _)| *id)
        .filter(|id| !id.contains(' '))
        .chain(LEFT_OUT.iter().map(|(id, _)| *id))
        .collect();
    let unique: BTreeSet<&str> = known.iter().copied().collect();
    assert_eq!(unique.len(), known.len(), "an id is listed twice");
    assert_eq!(unique, wanted);
}
