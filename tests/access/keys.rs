//! Changing keys, and an identity provider that fails in every possible way, against the program itself.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::TIMEOUT;
use super::client::{request, rest};
use super::host::{Folder, Host, SEAL};
use super::provider::{Answer, Provider};
use super::secrets;
use super::signer::{AUDIENCE, ISSUER, Signer, claims};
use crate::support::app::TestApp;

/// A host that trusts this provider's keys.
async fn trusting(app: &TestApp, provider: &Provider, ages: &[(&str, &str)]) -> Host {
    let mut settings = vec![
        ("jwks_url", provider.url.as_str()),
        ("jwt_issuer", ISSUER),
        ("jwt_audience", AUDIENCE),
    ];
    settings.extend(ages);
    Host::start(app.database.url(), &settings).await
}

/// The response to a token of this signer: the status, and the code of a problem.
async fn met(host: &Host, signer: &Signer) -> (u16, String) {
    let token = signer.token(&claims("author", "default", &["user"]));
    let reply = host
        .ask("GET /v1/instances", &[("authorization", &token)], "")
        .await;
    let again = reply.header("retry-after").is_some();
    assert_eq!(again, reply.status == 503, "{}", reply.text);
    (reply.status, reply.code())
}

fn refused() -> (u16, String) {
    (401, "token_untrusted".to_owned())
}

fn unavailable() -> (u16, String) {
    (503, "token_keys_unavailable".to_owned())
}

/// Sends requests until a token of this signer gets this response.
async fn until(host: &Host, signer: &Signer, wanted: (u16, String)) {
    let (mut count, mut last) = (0, None);
    let asking = async {
        while last.as_ref() != Some(&wanted) {
            last = Some(met(host, signer).await);
            count += 1;
        }
    };
    let in_time = tokio::time::timeout(TIMEOUT, asking).await.is_ok();
    let id = &signer.id;
    assert!(
        in_time,
        "a token of {id} is met with {last:?}, not {wanted:?}, {count} times"
    );
}

/// A provider signs tokens for other programs, too. A host that checks neither issuer nor audience would accept them.
#[tokio::test]
async fn a_host_needs_an_issuer_and_an_audience_besides_keys() {
    let folder = Folder::new();
    let keys = format!(
        "listen = \"127.0.0.1:0\"\nroles = \"api\"\nseal_keys = {SEAL:?}\n\
        database_url = \"postgres://u:p@127.0.0.1:9/x\"\njwks_url = \"http://127.0.0.1:9/keys\"\n"
    );
    let issuer = format!("jwt_issuer = {ISSUER:?}\n");
    let audience = format!("jwt_audience = {AUDIENCE:?}\n");
    for (further, needed) in [
        ("", "set jwt_issuer and jwt_audience"),
        (issuer.as_str(), "set jwt_audience"),
        (audience.as_str(), "set jwt_issuer"),
    ] {
        let refusal = secrets::refused(&folder.0, &format!("{keys}{further}"), &[]).await;
        assert!(refusal.contains(needed), "{further}: {refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_added_and_removed_as_at_the_provider() {
    let app = TestApp::empty().await;
    let (old, new) = (Signer::es256("old"), Signer::ed25519("new"));
    let provider = Provider::start(&[&old]).await;
    let ages = [("fresh", "1"), ("interval_min", "1")];
    let host = trusting(&app, &provider, &ages).await;
    assert_eq!(met(&host, &old).await.0, 200);
    // The new key appears beside the old one. The host fetches it because a token names it.
    provider.publish(&[&old, &new]);
    until(&host, &new, (200, String::new())).await;
    assert_eq!(met(&host, &old).await.0, 200);
    // The old key is withdrawn. It ends with a refresh, although no token names a new key.
    provider.publish(&[&new]);
    until(&host, &old, refused()).await;
    assert_eq!(met(&host, &new).await.0, 200);
}

/// A stream of events, opened with a token of this signer. Its head and its first message are read.
async fn stream(host: &Host, signer: &Signer) -> TcpStream {
    let token = signer.token(&claims("author", "default", &["user"]));
    let headers = [("authorization", token.as_str()), ("connection", "close")];
    let text = request("GET /v1/events/stream", &headers, "");
    let mut stream = TcpStream::connect(host.address)
        .await
        .expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("sent");
    let mut head = Vec::new();
    let opened = async {
        // The first message has only an id, and ends with an empty line and its chunk.
        while !head.ends_with(b"\n\n\r\n") {
            head.push(stream.read_u8().await.expect("an answer"));
        }
    };
    let in_time = tokio::time::timeout(TIMEOUT, opened).await.is_ok();
    assert!(in_time && head.starts_with(b"HTTP/1.1 200 "), "{head:?}");
    stream
}

/// A stream ends when the key of its token is withdrawn, like requests, also if it has nothing to send and no request arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_key_ends_the_streams_that_it_opened() {
    let app = TestApp::empty().await;
    let (withdrawn, kept) = (Signer::es256("withdrawn"), Signer::ed25519("kept"));
    let provider = Provider::start(&[&withdrawn, &kept]).await;
    let ages = [("fresh", "1"), ("interval_min", "1")];
    let host = trusting(&app, &provider, &ages).await;
    let mut ends = stream(&host, &withdrawn).await;
    let goes_on = stream(&host, &kept).await;
    provider.publish(&[&kept]);
    rest(&mut ends).await;
    let result = goes_on.try_read(&mut [0; 8]);
    let nothing = result.as_ref().err().map(std::io::Error::kind);
    assert_eq!(nothing, Some(ErrorKind::WouldBlock), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn known_keys_outlive_an_outage_for_the_stated_time() {
    const KEPT_SECONDS: u64 = 6;
    let app = TestApp::empty().await;
    let signer = Signer::ed25519("k");
    let provider = Provider::start(&[&signer]).await;
    let kept = KEPT_SECONDS.to_string();
    let ages = [
        ("fresh", "1"),
        ("interval_min", "1"),
        ("kept_max", kept.as_str()),
    ];
    let host = trusting(&app, &provider, &ages).await;
    until(&host, &signer, (200, String::new())).await;
    provider.answer(Answer::Status(502));
    // From here on no fetch succeeds, so the keys are at least as old as this.
    let (down, before) = (Instant::now(), provider.hits());
    let mut served = 0;
    let ended = loop {
        match met(&host, &signer).await {
            (200, _) => served += 1,
            other => break other,
        }
        assert!(
            down.elapsed() < TIMEOUT,
            "keys are used for ever if the provider does not answer"
        );
    };
    assert_eq!(ended, unavailable());
    assert!(
        served > 0,
        "no token was accepted while the provider was down"
    );
    assert!(
        provider.hits() > before,
        "the keys were requested again meanwhile"
    );
    // The keys were fresh when the provider went down. The tolerance is a second beyond their freshness, because the clock has
    // whole seconds.
    assert!(
        down.elapsed() > Duration::from_secs(KEPT_SECONDS - 4),
        "{:?}",
        down.elapsed()
    );
    provider.publish(&[&signer]);
    until(&host, &signer, (200, String::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_answer_replaces_no_key() {
    let app = TestApp::empty().await;
    let (known, stranger) = (Signer::ed25519("known"), Signer::ed25519("stranger"));
    let provider = Provider::start(&[&known]).await;
    let host = trusting(&app, &provider, &[("interval_min", "1")]).await;
    assert_eq!(met(&host, &known).await.0, 200);
    let padded = format!(
        "{}{}",
        super::provider::set(&[&stranger]),
        " ".repeat(300 * 1024)
    );
    let answers = [
        ("down", Answer::Status(503)),
        (
            "not JSON",
            Answer::Text("<html>maintenance</html>".to_owned()),
        ),
        ("no key", Answer::Text(r#"{"keys":[]}"#.to_owned())),
        (
            "a secret",
            Answer::Text(r#"{"keys":[{"kty":"oct","kid":"stranger","k":"AAAA"}]}"#.to_owned()),
        ),
        ("too large", Answer::Text(padded)),
        ("endless", Answer::Endless),
        ("elsewhere", Answer::Redirect(provider.elsewhere.clone())),
        ("silence", Answer::Silence),
    ];
    for (name, answer) in answers {
        provider.answer(answer);
        let before = provider.hits();
        // The first tokens arrive within the minimum interval after the last fetch.
        let asking = async {
            while provider.hits() == before {
                met(&host, &stranger).await;
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, asking).await;
        waited.unwrap_or_else(|_| panic!("{name}: the provider is not asked again"));
        until(&host, &stranger, unavailable()).await;
        assert_eq!(met(&host, &known).await.0, 200, "{name}");
        assert_eq!(met(&host, &stranger).await, unavailable(), "{name}");
    }
    assert_eq!(provider.followed(), 0, "no redirect is followed");
    let log = host.log();
    assert!(
        log.contains("the keys of the identity provider could not be fetched"),
        "{log}"
    );
    provider.publish(&[&known, &stranger]);
    until(&host, &stranger, (200, String::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_not_answer_delays_nobody_with_a_known_key() {
    let app = TestApp::empty().await;
    let (known, stranger) = (Signer::ed25519("known"), Signer::es256("stranger"));
    let provider = Provider::start(&[&known]).await;
    let host = trusting(&app, &provider, &[("interval_min", "1")]).await;
    until(&host, &known, (200, String::new())).await;
    provider.answer(Answer::Silence);
    let waiting = until(&host, &stranger, unavailable());
    let served = async {
        provider.asked(provider.hits() + 1).await;
        for _ in 0..20 {
            assert_eq!(met(&host, &known).await.0, 200);
        }
    };
    // A token with an unknown key is answered, too, when the fetch has timed out.
    tokio::join!(waiting, served);
}

/// While the provider does not answer, no request waits for the whole timeout of a fetch, which is 5 s.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_not_answer_delays_nobody_for_long() {
    const TOKENS: usize = 20;
    const WAIT_MAX: Duration = Duration::from_secs(4);
    let app = TestApp::empty().await;
    let (known, stranger) = (Signer::ed25519("known"), Signer::es256("stranger"));
    let provider = Provider::start(&[&known]).await;
    let ages = [("fresh", "1"), ("interval_min", "1")];
    let host = trusting(&app, &provider, &ages).await;
    until(&host, &known, (200, String::new())).await;
    provider.answer(Answer::Silence);
    let hits = provider.hits();
    // Until a known key is no longer fresh.
    let asking = async {
        while provider.hits() == hits {
            assert_eq!(met(&host, &known).await.0, 200);
        }
    };
    tokio::time::timeout(TIMEOUT, asking)
        .await
        .expect("a fetch");
    let begun = Instant::now();
    let replies = join_all((0..TOKENS).map(|_| met(&host, &stranger))).await;
    assert!(
        replies.iter().all(|reply| *reply == unavailable()),
        "{replies:?}"
    );
    assert!(begun.elapsed() < WAIT_MAX, "{:?}", begun.elapsed());
    let begun = Instant::now();
    assert_eq!(met(&host, &known).await.0, 200);
    assert!(begun.elapsed() < WAIT_MAX, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_keys_do_not_flood_the_provider() {
    const TOKENS: usize = 400;
    const AT_ONCE: usize = 40;
    let app = TestApp::empty().await;
    let known = Signer::ed25519("known");
    let provider = Provider::start(&[&known]).await;
    let host = trusting(&app, &provider, &[("interval_min", "5")]).await;
    assert_eq!(met(&host, &known).await.0, 200);
    let begun = Instant::now();
    for round in 0..TOKENS / AT_ONCE {
        let strangers: Vec<_> = (0..AT_ONCE)
            .map(|number| Signer::ed25519(&format!("invented-{round}-{number}")))
            .collect();
        let replies = join_all(strangers.iter().map(|stranger| met(&host, stranger))).await;
        assert!(
            replies.iter().all(|reply| *reply == refused()),
            "{replies:?}"
        );
    }
    let intervals = usize::try_from(begun.elapsed().as_secs() / 5).expect("a small number");
    let hits = provider.hits();
    assert!(
        hits <= 2 + intervals,
        "{hits} questions for {TOKENS} tokens in {intervals} intervals"
    );
    assert_eq!(met(&host, &known).await.0, 200);
}
