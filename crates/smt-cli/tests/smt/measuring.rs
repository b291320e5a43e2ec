// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt perf`, `smt demo` and `smt doctor`.

use crate::program::smt;

#[test]
fn a_measurement_is_json_lines_with_its_configuration() {
    let outcome = smt(&[
        "perf",
        "loopback",
        "--sizes",
        "64,1K",
        "--concurrency",
        "1,4",
        "--duration",
        "30ms",
        "--repeat",
        "2",
        "--against",
        "tls",
        "--json",
    ]);
    let lines: Vec<serde_json::Value> =
        outcome.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["schema"] == 1));
    assert_eq!(lines[0]["kind"], "configuration");
    assert_eq!(lines[0]["sizes"], serde_json::json!([64, 1_024]));
    assert_eq!(lines.len(), 1 + 2 * 2 * 2);
    for pair in lines[1..].chunks(2) {
        assert_eq!((&pair[0]["transport"], &pair[1]["transport"]), (&"smt".into(), &"tls".into()));
        assert!(pair[0].get("smt_ratio").is_none() && pair[1]["smt_ratio"]["rpc_per_s"].is_f64());
        // Threads against threads, tasks against tasks.
        let api = match pair[0]["concurrency"] == 1 {
            true => "blocking",
            false => "tokio",
        };
        assert_eq!((&pair[0]["api"], &pair[1]["api"]), (&api.into(), &api.into()));
        assert_eq!(pair[1]["compared"], format!("smt/{api} to tls/{api}"));
        for line in pair {
            let number = |name: &str| line[name].as_f64().unwrap();
            assert!(number("p50_us") <= number("p99_us") && number("p99_us") <= number("max_us"));
            assert!(number("rpc_per_s") > 0.0 && number("server_cpu_us_per_rpc") > 0.0);
            assert_eq!(line["repetitions"], 2);
        }
    }
}

#[test]
fn a_measurement_is_a_table_for_people() {
    let outcome = smt(&[
        "perf",
        "loopback",
        "--sizes",
        "64",
        "--concurrency",
        "1,3",
        "--duration",
        "30ms",
        "--api",
        "blocking",
        "--server-api",
        "tokio",
        "--no-gso",
    ]);
    let text = outcome.text();
    assert_eq!(text.lines().filter(|line| line.starts_with("smt/blocking")).count(), 2, "{text}");
    assert!(text.contains("p99.9"), "{text}");
    // A debug build, as tests have, must say that its numbers mean nothing.
    assert_eq!(outcome.errors.contains("debug build"), cfg!(debug_assertions));
}

#[test]
fn the_demo_does_what_it_says() {
    let outcome = smt(&["demo"]);
    let text = outcome.text();
    for words in ["TLS_AES_128_GCM_SHA256", "1 MB", "requires a certificate", "served ", "removed"]
    {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
    assert_eq!(text.matches("equal").count(), 5, "{text}");
    let directory = text.split_whitespace().find(|word| word.contains("/smt-")).unwrap();
    assert!(!std::path::Path::new(directory).exists());
}

#[test]
fn the_doctor_tells_findings_to_people_and_programs() {
    assert!(smt(&["doctor"]).text().contains("receive buffer"));
    let outcome = smt(&["doctor", "--json"]);
    for line in outcome.text().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["schema"], 1);
        assert!(line["kind"] == "machine" || line["name"].is_string());
    }
}
