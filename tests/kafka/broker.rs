//! Real brokers for tests, run by `scripts/kafka.sh`, and topics on them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

/// A broker in a folder of its own, killed when dropped; the shared one ends with this process.
pub(super) struct Broker {
    folder: PathBuf,
    pub(super) address: String,
}

impl Broker {
    /// The broker that tests share, each with topics of its own.
    pub(super) fn shared() -> &'static Broker {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(|| Broker::start("shared"))
    }

    /// A broker for a test that takes it down.
    pub(super) fn start(name: &str) -> Broker {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kafka-{name}-{}", std::process::id()));
        let address = kafka(&["start", &text(&folder), "0"]);
        Broker { folder, address }
    }

    /// Ends the broker as a crash would.
    pub(super) fn kill(&self) {
        kafka(&["kill", &text(&self.folder)]);
    }

    /// Starts it again, at the same address and with the same data.
    pub(super) fn restart(&self) {
        assert_eq!(kafka(&["start", &text(&self.folder)]), self.address);
    }

    pub(super) async fn create_topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let admin: AdminClient<DefaultClientContext> =
            ClientConfig::new().set("bootstrap.servers", &self.address).create().expect("an admin client");
        let topic = settings
            .iter()
            .fold(NewTopic::new(name, partitions, TopicReplication::Fixed(1)), |topic, (key, value)| topic.set(key, value));
        let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(10)));
        let answers = admin.create_topics([&topic], &options).await.expect("an answer");
        answers[0].as_ref().expect("the topic is new");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
        std::fs::remove_dir_all(&self.folder).expect("the broker's folder can be removed");
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path of letters").to_owned()
}

fn kafka(arguments: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/kafka.sh");
    let output = Command::new(script)
        .args(arguments)
        .env("KAFKA_OWNER_PID", std::process::id().to_string())
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("scripts/kafka.sh runs");
    assert!(output.status.success(), "scripts/kafka.sh {arguments:?} failed");
    String::from_utf8(output.stdout).expect("an address").trim().to_owned()
}
