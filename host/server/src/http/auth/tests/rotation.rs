//! Keys that change, and an identity provider that is not available.

use super::provider::Answer;
use super::*;

const MINUTE: Duration = Duration::from_mins(1);

async fn subject(authenticator: &Authenticator, signer: &Signer) -> Result<String, AuthError> {
    let far = content("exp", json!(NOW_SECONDS + 10 * 24 * 3600));
    let token = signer.token(&far, signer.algorithms[0]);
    authenticator
        .authenticate(Some(&token))
        .await
        .map(|claims| claims.subject)
}

#[tokio::test]
async fn a_new_key_is_fetched_when_it_first_appears() {
    let (old, new) = (Signer::ed25519("old"), Signer::es256("new"));
    let time = TestTime::new();
    let provider = Provider::start(std::slice::from_ref(&old)).await;
    let authenticator = provider.authenticator(&time);
    assert!(subject(&authenticator, &old).await.is_ok());

    provider.answer(Answer::Text(provider::set(std::slice::from_ref(&new))));
    time.advance(Duration::from_secs(10));
    assert!(subject(&authenticator, &new).await.is_ok());
    assert_eq!(
        subject(&authenticator, &old).await,
        Err(AuthError::Untrusted)
    );
    assert_eq!(provider.hits(), 2);
}

#[tokio::test]
async fn invented_key_ids_do_not_flood_the_provider() {
    let known = Signer::ed25519("known");
    let time = TestTime::new();
    let provider = Provider::start(std::slice::from_ref(&known)).await;
    let authenticator = provider.authenticator(&time);
    for round in 1..=3 {
        for id in 0..20 {
            let invented = Signer::ed25519(&format!("invented-{id}"));
            assert_eq!(
                subject(&authenticator, &invented).await,
                Err(AuthError::Untrusted)
            );
        }
        assert_eq!(provider.hits(), round);
        time.advance(Duration::from_secs(10));
    }
    assert!(subject(&authenticator, &known).await.is_ok());
}

#[tokio::test]
async fn many_first_requests_cause_one_fetch() {
    let signer = Signer::ed25519("k");
    let provider = Provider::start(std::slice::from_ref(&signer)).await;
    let authenticator = provider.authenticator(&TestTime::new());
    let all =
        futures_util::future::join_all((0..50).map(|_| subject(&authenticator, &signer))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(provider.hits(), 1);
}

#[tokio::test]
async fn a_caller_who_leaves_does_not_waste_the_fetch() {
    let signer = Signer::ed25519("k");
    let provider = Provider::start(std::slice::from_ref(&signer)).await;
    let authenticator = provider.authenticator(&TestTime::new());
    let mut first = Box::pin(subject(&authenticator, &signer));
    assert!(futures_util::poll!(first.as_mut()).is_pending());
    drop(first);
    assert!(subject(&authenticator, &signer).await.is_ok());
    assert_eq!(provider.hits(), 1);
}

#[tokio::test]
async fn good_keys_outlive_an_outage_for_a_bounded_time() {
    let signer = Signer::ed25519("k");
    let time = TestTime::new();
    let provider = Provider::start(std::slice::from_ref(&signer)).await;
    let authenticator = provider.authenticator(&time);
    assert!(subject(&authenticator, &signer).await.is_ok());

    provider.answer(Answer::Failure);
    time.advance(6 * MINUTE);
    assert!(subject(&authenticator, &signer).await.is_ok());
    assert_eq!(provider.hits(), 2);
    time.advance(23 * 60 * MINUTE);
    assert!(subject(&authenticator, &signer).await.is_ok());
    assert_eq!(provider.hits(), 3);
    time.advance(60 * MINUTE);
    assert_eq!(
        subject(&authenticator, &signer).await,
        Err(AuthError::Unavailable)
    );

    provider.answer(Answer::Text(provider::set(std::slice::from_ref(&signer))));
    time.advance(MINUTE);
    assert!(subject(&authenticator, &signer).await.is_ok());
}

#[tokio::test]
async fn a_withdrawn_key_is_not_accepted_once_it_is_no_longer_fresh() {
    let (kept, withdrawn) = (Signer::ed25519("kept"), Signer::ed25519("withdrawn"));
    let time = TestTime::new();
    let both = [kept, withdrawn];
    let provider = Provider::start(&both).await;
    let authenticator = provider.authenticator(&time);
    let [kept, withdrawn] = &both;
    assert!(subject(&authenticator, withdrawn).await.is_ok());

    provider.answer(Answer::Text(provider::set(std::slice::from_ref(kept))));
    time.advance(6 * MINUTE);
    let refused = subject(&authenticator, withdrawn).await;
    assert_eq!(refused, Err(AuthError::Untrusted));
    assert!(subject(&authenticator, kept).await.is_ok());
    assert_eq!(provider.hits(), 2);
}

#[tokio::test]
async fn unusable_answers_replace_nothing() {
    let signer = Signer::ed25519("k");
    let time = TestTime::new();
    let provider = Provider::start(std::slice::from_ref(&signer)).await;
    let authenticator = provider.authenticator(&time);
    assert!(subject(&authenticator, &signer).await.is_ok());

    let stranger = Signer::ed25519("stranger");
    let set = provider::set(std::slice::from_ref(&stranger));
    let answers = [
        (
            "too large",
            Answer::Text(format!("{set}{}", " ".repeat(300 * 1024))),
        ),
        ("no key", Answer::Text(provider::set(&[]))),
        ("not JSON", Answer::Text("<html>".to_owned())),
        ("elsewhere", Answer::Redirect),
    ];
    for (number, (name, answer)) in answers.into_iter().enumerate() {
        provider.answer(answer);
        time.advance(MINUTE);
        assert_eq!(
            subject(&authenticator, &stranger).await,
            Err(AuthError::Unavailable),
            "{name}"
        );
        assert_eq!(
            provider.hits(),
            number + 2,
            "{name}: asked once, and no redirect followed"
        );
        assert!(subject(&authenticator, &signer).await.is_ok(), "{name}");
    }
}

#[tokio::test]
async fn without_any_key_nobody_is_let_in() {
    let signer = Signer::ed25519("k");
    let provider = Provider::start(&[]).await;
    let authenticator = provider.authenticator(&TestTime::new());
    assert_eq!(
        subject(&authenticator, &signer).await,
        Err(AuthError::Unavailable)
    );
}
