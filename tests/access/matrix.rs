//! Every route, called with every token that must not open it. The routes come from the OpenAPI document, so a new route cannot
//! be forgotten.
//!
//! A refusal must not depend on what exists: it has the same bytes for all routes, and for existing and missing things.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::client::Reply;
use super::host::Host;
use super::provider::Provider;
use super::signer::{AUDIENCE, ISSUER, Signer, bearer, claims, encoded, seconds, with};
use crate::api::access::World;
use crate::api::openapi::{Operation, operations};
use crate::api::rows;
use crate::support::app::ADMIN;
use wrkflw_store::directory::tenants;

/// Concurrent requests.
const AT_ONCE: usize = 8;

/// A token, and the expected response.
struct Case {
    name: String,
    authorization: Option<String>,
    status: u16,
    code: &'static str,
}

fn case(name: impl Into<String>, authorization: String, code: &'static str) -> Case {
    Case {
        name: name.into(),
        authorization: Some(authorization),
        status: 401,
        code,
    }
}

/// Unsigned tokens, and tokens with an invalid signature.
fn unsigned(signers: &[Signer], good: &Value) -> Vec<Case> {
    let mut cases = vec![
        Case {
            authorization: None,
            ..case("no token", String::new(), "token_missing")
        },
        case("another scheme", "Basic YTpi".to_owned(), "token_missing"),
        case("no JWT", "Bearer nonsense".to_owned(), "token_malformed"),
        case("empty parts", "Bearer ..".to_owned(), "token_malformed"),
        case(
            "too long",
            format!("Bearer {}", "a".repeat(9000)),
            "token_malformed",
        ),
    ];
    for algorithm in ["none", "None", "nOnE", ""] {
        let head = encoded(
            json!({ "alg": algorithm, "kid": "r" })
                .to_string()
                .as_bytes(),
        );
        for signature in ["", "AAAA"] {
            let token = format!(
                "Bearer {head}.{}.{signature}",
                encoded(good.to_string().as_bytes())
            );
            cases.push(case(
                format!("algorithm {algorithm:?}"),
                token,
                "token_malformed",
            ));
        }
    }
    for signer in signers {
        for (number, public) in signer.public_forms.iter().enumerate() {
            for algorithm in [Algorithm::HS256, Algorithm::HS512] {
                let header = Header {
                    kid: Some(signer.id.clone()),
                    ..Header::new(algorithm)
                };
                let name = format!("{algorithm:?} under public form {number} of {}", signer.id);
                let token = bearer(&header, good, &EncodingKey::from_secret(public));
                cases.push(case(name, token, "token_untrusted"));
            }
        }
    }
    cases
}

/// Tokens of this signer, each wrong in one way.
fn wrong(signer: &Signer, good: &Value) -> Vec<Case> {
    let of = |name: &str, claim: &str, value: Value, code: &'static str| {
        let name = format!("{name}, {}", signer.id);
        case(name, signer.token(&with(good, claim, value)), code)
    };
    let token = signer.token(good);
    let (head, signature) = (
        token.split('.').next().expect("a head"),
        token.rsplit('.').next().expect("a signature"),
    );
    let other = encoded(with(good, "sub", json!("admin")).to_string().as_bytes());
    let tampered = format!("{head}.{other}.{signature}");
    vec![
        of("expired", "exp", json!(seconds(-3600)), "token_expired"),
        of("without end", "exp", Value::Null, "token_claim_invalid"),
        of(
            "not yet valid",
            "nbf",
            json!(seconds(3600)),
            "token_not_yet_valid",
        ),
        of(
            "wrong issuer",
            "iss",
            json!("https://evil.example"),
            "token_untrusted",
        ),
        of("no issuer", "iss", Value::Null, "token_untrusted"),
        of("wrong audience", "aud", json!(["other"]), "token_untrusted"),
        of("no audience", "aud", Value::Null, "token_untrusted"),
        of("no tenant", "tenant", Value::Null, "token_claim_invalid"),
        of("no subject", "sub", Value::Null, "token_claim_invalid"),
        of(
            "the host's own name",
            "sub",
            json!("wrkflw:host"),
            "token_claim_invalid",
        ),
        case(
            format!("tampered, {}", signer.id),
            tampered,
            "token_untrusted",
        ),
        case(
            format!("unknown key, {}", signer.id),
            signer.token_naming("unknown", good),
            "token_untrusted",
        ),
    ]
}

fn cases(signers: &[Signer]) -> Vec<Case> {
    let good = claims("author", "default", &["admin"]);
    let mut cases = unsigned(signers, &good);
    for signer in signers {
        cases.extend(wrong(signer, &good));
    }
    // Another key under the name of a trusted one, of the same type and of another.
    let strangers = [Signer::es256("r"), Signer::es256("e"), Signer::ed25519("d")];
    cases.extend(strangers.iter().map(|stranger| {
        let name = format!("a stranger's key as {}", stranger.id);
        case(name, stranger.token(&good), "token_untrusted")
    }));
    cases.push(Case {
        status: 403,
        ..case(
            "unknown tenant",
            signers[0].token(&with(&good, "tenant", json!("nowhere"))),
            "unknown_tenant",
        )
    });
    cases
}

/// A host that trusts these keys, on the database of this world.
async fn guarded(world: &World, provider: &Provider) -> Host {
    let settings = [
        ("jwks_url", provider.url.as_str()),
        ("jwt_issuer", ISSUER),
        ("jwt_audience", AUDIENCE),
    ];
    Host::start(world.app.database.url(), &settings).await
}

async fn send(
    host: &Host,
    world: &World,
    operation: &Operation,
    path: &str,
    authorization: Option<&str>,
) -> Reply {
    let line = format!("{} {path}", operation.method.to_uppercase());
    let body = world.body(operation).map(|body| body.to_string());
    let headers: Vec<_> = authorization
        .map(|value| ("authorization", value))
        .into_iter()
        .collect();
    host.ask(&line, &headers, &body.unwrap_or_default()).await
}

/// The response without the parts that differ for each request.
fn blurred(reply: &Reply, path: &str, replaced: &[(String, String)]) -> String {
    let request = reply.header("x-request-id").unwrap_or_default().to_owned();
    let mut headers: Vec<_> = reply
        .headers
        .iter()
        .filter(|(name, _)| !["date", "x-request-id", "content-length"].contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    headers.sort();
    let mut text = reply.text.replace(path, "PATH");
    if !request.is_empty() {
        text = text.replace(&request, "REQUEST");
    }
    let moments: Vec<_> = text
        .split(['"', ' '])
        .filter(|word| word.parse::<jiff::Timestamp>().is_ok())
        .map(str::to_owned)
        .collect();
    for moment in moments {
        text = text.replace(&moment, "THEN");
    }
    for (there, missing) in replaced {
        text = text.replace(there, "ID").replace(missing, "ID");
    }
    format!("{}\n{}\n{text}", reply.status, headers.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_invalid_token_opens_a_route() {
    let world = World::new().await;
    let signers = [Signer::rsa("r"), Signer::es256("e"), Signer::ed25519("d")];
    let provider = Provider::start(&signers.each_ref()).await;
    let host = guarded(&world, &provider).await;
    let before = rows(&world.app).await;
    let operations = operations(&world.app).await;
    let cases = cases(&signers);
    assert!(operations.len() > 60 && cases.len() > 60);
    // Each trusted key opens a route for a permitted caller. Otherwise the rest would prove nothing.
    for signer in &signers {
        let token = signer.token(&claims("author", "default", &["user"]));
        let reply = host
            .ask("GET /v1/instances", &[("authorization", &token)], "")
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    for case in &cases {
        let replies = stream::iter(&operations)
            .map(async |operation| {
                let path = world.path(operation);
                let reply = send(
                    &host,
                    &world,
                    operation,
                    &path,
                    case.authorization.as_deref(),
                )
                .await;
                let blurred = blurred(&reply, &path, &[]);
                (
                    format!("{}: {} {path}", case.name, operation.method),
                    reply,
                    blurred,
                )
            })
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (name, reply, blurred) in &replies {
            let (status, code) = (reply.status, reply.code());
            assert_eq!(
                (status, code.as_str()),
                (case.status, case.code),
                "{name}: {}",
                reply.text
            );
            let challenge = reply.header("www-authenticate");
            let expected = match (case.status, case.code) {
                (401, "token_missing") => Some("Bearer realm=\"wrkflw\"".to_owned()),
                (401, code) => Some(format!(
                    "Bearer realm=\"wrkflw\", error=\"invalid_token\", error_description=\"{code}\""
                )),
                _ => None,
            };
            assert_eq!(challenge, expected.as_deref(), "{name}");
            assert_eq!(
                *blurred, replies[0].2,
                "{name} is told another thing than {}",
                replies[0].0
            );
        }
    }
    assert_eq!(rows(&world.app).await, before, "nothing was written");
    // The provider got at most one request per interval because of the invented keys.
    assert!(provider.hits() <= 20, "{} questions", provider.hits());
}

/// Requests existing and missing things. A caller without access must get the same response.
async fn compared(
    host: &Host,
    world: &World,
    operation: &Operation,
    token: &str,
) -> (Reply, Reply) {
    let path = world.path(operation);
    let (nowhere, replaced) = world.missing(operation);
    let there = send(host, world, operation, &path, Some(token)).await;
    let missing = send(host, world, operation, &nowhere, Some(token)).await;
    let name = format!("{} {path} against {nowhere}", operation.method);
    assert_eq!(there.status, missing.status, "{name}: {}", missing.text);
    // Things that the caller created, or a page of them, have ids and times of their own.
    if there.status >= 400 {
        let (there, missing) = (
            blurred(&there, &path, &replaced),
            blurred(&missing, &nowhere, &replaced),
        );
        assert_eq!(there, missing, "{name}");
    }
    (there, missing)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_a_permission_does_not_learn_what_exists() {
    let world = World::new().await;
    let signer = Signer::ed25519("d");
    let provider = Provider::start(&[&signer]).await;
    let host = guarded(&world, &provider).await;
    let token = signer.token(&claims("stranger", "default", &["no-such-role"]));
    let mut compared_count = 0;
    let operations = operations(&world.app).await;
    // Everybody may read who they are.
    let of_others = |one: &&Operation| !one.path.starts_with("/v1/me");
    for operation in operations.iter().filter(of_others) {
        let (there, _) = compared(&host, &world, operation, &token).await;
        assert_eq!(
            (there.status, there.code().as_str()),
            (403, "permission_missing"),
            "{}",
            there.text
        );
        let permission = there.json()["reason"]
            .as_str()
            .expect("a permission")
            .to_owned();
        assert!(ADMIN.contains(&permission.as_str()), "{permission}");
        compared_count += usize::from(world.path(operation) != world.missing(operation).0);
    }
    assert!(
        compared_count > 40,
        "{compared_count} routes name something"
    );
    // A start names its definition in the body. A definition without an active version counts as missing.
    for key in ["document-approval", "no-flow"] {
        let body = json!({ "definitionKey": key, "entityType": "document", "entityId": "doc-9", "data": {} });
        let reply = host
            .ask(
                "POST /v1/instances",
                &[("authorization", &token)],
                &body.to_string(),
            )
            .await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (403, "permission_missing"),
            "{key}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn things_of_another_tenant_do_not_exist() {
    let world = World::new().await;
    let roles = BTreeMap::from([("admin", ADMIN)]);
    let (store, now) = (world.app.store(), world.app.engine.clock().now());
    tenants::ensure_tenant(store, "other", &roles, now)
        .await
        .expect("a tenant");
    let signer = Signer::es256("e");
    let provider = Provider::start(&[&signer]).await;
    let host = guarded(&world, &provider).await;
    let token = signer.token(&claims("author", "other", &["admin"]));
    let first = first_tenant(&world).await;
    let mut not_found = 0;
    for operation in operations(&world.app).await {
        if operation.path.ends_with("/stream") {
            continue;
        }
        let (there, _) = compared(&host, &world, &operation, &token).await;
        assert!(there.status < 500, "{}", there.text);
        not_found += usize::from(there.status == 404);
    }
    assert!(not_found > 35, "{not_found} routes answer 404");
    assert_eq!(
        first_tenant(&world).await,
        first,
        "the rows of the first tenant have not changed"
    );
}

/// The number of rows of the first tenant, table by table.
async fn first_tenant(world: &World) -> BTreeMap<String, i64> {
    // Without the series, because the host writes counts of the first tenant's own commands meanwhile.
    let pool = world.app.database.admin_pool();
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns where table_schema = 'public' and column_name = 'tenant_id'
         and table_name <> 'series_point'",
    )
    .fetch_all(pool)
    .await
    .expect("the catalogue");
    let counts = tables.iter().map(|table| {
        format!("select '{table}', count(*) from \"{table}\" where tenant_id = (select id from tenant where name = 'default')")
    });
    let counts = counts.collect::<Vec<_>>().join(" union all ");
    let counts: Vec<(String, i64)> = sqlx::query_as(sqlx::AssertSqlSafe(counts))
        .fetch_all(pool)
        .await
        .expect("counts");
    counts.into_iter().collect()
}
