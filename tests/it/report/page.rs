//! What a page holds: everything it needs, nothing that leaves it, and the same words as the golden file.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::{between, data, fixture, report, report_of, without_echarts};

/// Pages as people last saw them, without ECharts. `UPDATE_GOLDEN=1` writes them anew; read that difference like code.
#[test]
fn pages_are_as_they_were_when_somebody_last_looked() {
    for (name, lang) in [("npu_two_devices", "en"), ("cuda_oom_expandable", "zh"), ("cuda_empty", "en")] {
        let page = &report_of(&format!("{name}.pickle"), &["--mode", "all", "--lang", lang]);
        // What a page runs has files of its own to be read in.
        let page = without_scripts(page);
        // The command that is shown has the path of the checkout, the footer the version.
        let page = page
            .replace(env!("CARGO_MANIFEST_DIR"), "…")
            .replace(concat!("npusnap ", env!("CARGO_PKG_VERSION")), "npusnap VERSION");
        let golden =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/snapshots/report_{name}.{lang}.html"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &page).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert!(page == expected, "{} differs", golden.display());
    }
}

/// The page without scripts, style and policy, which are the same in every page, and with its data in lines.
fn without_scripts(page: &str) -> String {
    let data = serde_json::to_string_pretty(&data(page)).unwrap();
    let head = page.split("<script").next().unwrap();
    let policy = between(head, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    let style = between(head, "<style>", "</style>");
    let head = head.replace(policy, "POLICY").replace(style, "STYLE");
    format!("{}\n{data}\n", head.replace("><", ">\n<"))
}

#[test]
fn b44_nothing_in_a_page_leads_out_of_it() {
    let page = without_echarts(&report_of("npu_two_devices.pickle", &[]));
    for attribute in ["src=", "url(", "@import", "<link", "<iframe", "<object", "<base", "srcset=", "ping="] {
        assert!(!page.contains(attribute), "the page has {attribute}");
    }
    for (at, mark) in page.match_indices("href=\"") {
        assert_eq!(&page[at + mark.len()..=at + mark.len()], "#", "a link leaves the page");
    }
    for (at, _) in page.match_indices("http") {
        let around: String = page[at..].chars().take(40).collect();
        let known = ["http-equiv", "http://www.w3.org/2000/svg", "http://www.apache.org/licenses/"];
        assert!(known.iter().any(|known| around.starts_with(known)), "{around}");
    }
}

#[test]
fn the_policy_allows_what_is_in_the_page_and_no_network() {
    let page = report_of("npu_leak.pickle", &[]);
    let policy = between(&page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    for unsafe_word in ["unsafe", "http", "*", "blob:"] {
        assert!(!policy.contains(unsafe_word), "{policy}");
    }
    let mut scripts: Vec<&str> = page.split("<script>").skip(1).collect();
    scripts = scripts.into_iter().map(|rest| rest.split("</script>").next().unwrap()).collect();
    assert_eq!(scripts.len(), 5);
    for embedded in scripts.into_iter().chain([between(&page, "<style>", "</style>")]) {
        let hash = format!("'sha256-{}'", base64(&Sha256::digest(embedded.as_bytes())));
        assert!(policy.contains(&hash), "{hash} is not in {policy}");
    }
}

/// Worked out bit by bit, unlike the build script, which goes by words of three bytes.
fn base64(bytes: &[u8]) -> String {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut text: String = bits
        .as_bytes()
        .chunks(6)
        .map(|chunk| format!("{:0<6}", std::str::from_utf8(chunk).unwrap()))
        .map(|chunk| digits[usize::from_str_radix(&chunk, 2).unwrap()])
        .collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[test]
fn verdict_and_figures_need_no_script() {
    let page = report_of("npu_leak.pickle", &[]);
    let text = page.split("<script").next().unwrap();
    for part in ["id=\"verdict\"", "class=\"big\"", "<table>", "<noscript><svg", "id=\"reading\""] {
        assert!(text.contains(part), "no {part} before the first script");
    }
    let charts = data(&page)["charts"].as_array().unwrap().len();
    assert_eq!(text.matches("<noscript><svg").count(), charts, "every chart has a still picture");
}

#[test]
fn a_page_opens_in_the_language_asked_for_and_has_both() {
    for (lang, word) in [("en", "Memory snapshot report"), ("zh", "内存快照分析报告")] {
        let page = report_of("npu_leak.pickle", &["--lang", lang]);
        assert!(page.contains(&format!("<html lang=\"{lang}\"")));
        assert!(between(&page, "<title>", "</title>").contains(word));
        for both in ["<span lang=\"en\">Overview</span>", "<span lang=\"zh\">总览</span>"] {
            assert!(page.contains(both), "{both}");
        }
    }
}

#[test]
fn the_same_snapshot_makes_the_same_page() {
    let name = "cuda_oom_expandable.pickle";
    assert!(report(&fixture(name), &["--mode", "oom"]) == report(&fixture(name), &["--mode", "oom"]));
}

#[test]
fn the_licence_of_the_charts_can_be_read() {
    let page = report_of("cuda_empty.pickle", &[]);
    let footer = between(&page, "<footer>", "</footer>");
    assert!(footer.contains("Apache License, Version 2.0"), "{footer}");
}
