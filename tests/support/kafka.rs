//! Brokers for tests: the one that the test command started, and brokers of single tests that can be stopped, killed and
//! restarted.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use std::{env, fs};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use tokio::process::Command;

/// The variable with the address of the broker that all tests share.
const SHARED: &str = "WRKFLW_TEST_KAFKA";
/// How long the broker may take to create a topic.
const CREATE_TOPIC_MAX: Duration = Duration::from_secs(30);

/// The address of the shared broker, which no test may stop.
#[expect(
    clippy::disallowed_methods,
    reason = "the test command names its servers in the environment"
)]
pub(crate) fn shared_address() -> String {
    env::var(SHARED).unwrap_or_else(|_| {
        panic!("{SHARED} is not set: run `make test`, which starts Kafka for the tests")
    })
}

/// Creates a topic with these settings, and returns once the broker knows it. Tests that share a broker use different topics.
pub(crate) async fn create_topic(
    address: &str,
    name: &str,
    partitions: i32,
    settings: &[(&str, &str)],
) {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", address)
        .create()
        .expect("the settings of the client are valid");
    let topic = settings.iter().fold(
        NewTopic::new(name, partitions, TopicReplication::Fixed(1)),
        |topic, (key, value)| topic.set(key, value),
    );
    let options = AdminOptions::new().operation_timeout(Some(CREATE_TOPIC_MAX));
    let created = admin
        .create_topics([&topic], &options)
        .await
        .unwrap_or_else(|error| panic!("no topic {name}: {error}"));
    for result in created {
        result.unwrap_or_else(|(name, code)| panic!("no topic {name}: {code}"));
    }
}

/// A test's own broker. It keeps its address and its data when it is stopped or killed and restarted, and ends with the test,
/// even if the test is killed.
#[derive(Debug)]
pub(crate) struct OwnBroker {
    dir: PathBuf,
    address: String,
    advertised: Option<u16>,
}

impl OwnBroker {
    /// Starts an empty broker on a free port.
    pub(crate) async fn start() -> Self {
        Self::start_behind(None).await
    }

    /// Starts a broker that sends its clients to another port, behind which the test has a proxy.
    pub(crate) async fn start_behind(advertised: Option<u16>) -> Self {
        let dir = env::temp_dir().join(format!("wrkflw-kafka-{}", super::unique()));
        let address = run(&dir, "start", &["0"], advertised).await;
        Self {
            dir,
            address,
            advertised,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Stops the broker cleanly.
    pub(crate) async fn stop(&self) {
        run(&self.dir, "stop", &[], self.advertised).await;
    }

    /// Kills it.
    pub(crate) async fn kill(&self) {
        run(&self.dir, "kill", &[], self.advertised).await;
    }

    /// Restarts it at the same address.
    pub(crate) async fn start_again(&self) {
        assert_eq!(
            run(&self.dir, "start", &[], self.advertised).await,
            self.address,
            "clients know the broker by its address"
        );
    }
}

impl Drop for OwnBroker {
    fn drop(&mut self) {
        let killed = command(&self.dir, "kill", &[], None).into_std().status();
        if !killed.is_ok_and(|status| status.success()) {
            eprintln!("the broker in {} did not end", self.dir.display());
        }
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            eprintln!("{} is left over: {error}", self.dir.display());
        }
    }
}

fn command(dir: &Path, verb: &str, arguments: &[&str], advertised: Option<u16>) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/kafka.sh");
    let mut command = Command::new(script);
    command
        .arg(verb)
        .arg(dir)
        .args(arguments)
        .stdin(Stdio::null());
    command.env("KAFKA_OWNER_PID", std::process::id().to_string());
    if let Some(port) = advertised {
        command.env("KAFKA_ADVERTISED_PORT", port.to_string());
    }
    command
}

/// Runs the script without blocking the test's runtime, which may run a host. Returns its output.
async fn run(dir: &Path, verb: &str, arguments: &[&str], advertised: Option<u16>) -> String {
    let output: Output = command(dir, verb, arguments, advertised)
        .output()
        .await
        .expect("the script can be run");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "kafka.sh {verb} failed: {complaint}"
    );
    String::from_utf8(output.stdout)
        .expect("an address is text")
        .trim()
        .to_owned()
}
