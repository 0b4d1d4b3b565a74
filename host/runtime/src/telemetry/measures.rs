//! Every metric, described once, and the recorder that renders them for a scraper.
//!
//! A process has one recorder. Between scrapes the samples of histograms are kept in memory. `upkeep` sorts them into buckets, so
//! that the memory of a host without a scraper does not grow.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

/// The longest time before samples of histograms are sorted into buckets.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Seconds, from a dry run in memory to a caller's timeout.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    30.0,
];
/// Seconds in guest code, which has a short deadline.
const GUEST_SECONDS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_6, 0.003_2, 0.006_4, 0.012_8, 0.025, 0.05,
    0.1, 0.25, 0.5, 1.0,
];
/// Fuel: about one unit per instruction.
const FUEL: &[f64] = &[1e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9];

/// Seconds, from the precision of a timer to a long outage.
const SERVICE_SECONDS: &[f64] = &[
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
];
const LATENESS_SECONDS: &[f64] = &[
    0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3600.0, 21_600.0, 86_400.0,
];

/// Seconds, from the lag of an idle relay to an outage of the broker.
const LAG_SECONDS: &[f64] = &[
    0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 1.0, 2.5, 5.0, 10.0,
    60.0, 600.0, 3600.0,
];

/// Commands in one statement.
const ITEMS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0];
/// Seconds in a queue, from a switch between threads to a caller's timeout.
const WAIT_SECONDS: &[f64] = &[
    0.000_02, 0.000_1, 0.000_5, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.25, 1.0, 5.0,
];

enum Kind {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}

struct Measure {
    name: &'static str,
    kind: Kind,
    help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Measure {
    Measure {
        name,
        kind: Kind::Counter,
        help,
    }
}

const fn gauge(name: &'static str, help: &'static str) -> Measure {
    Measure {
        name,
        kind: Kind::Gauge,
        help,
    }
}

const fn histogram(name: &'static str, buckets: &'static [f64], help: &'static str) -> Measure {
    Measure {
        name,
        kind: Kind::Histogram(buckets),
        help,
    }
}

const MEASURES: &[Measure] = &[
    counter(
        "wrkflw_checkpoints_total",
        "Checkpoints of the audit that this host signed.",
    ),
    counter(
        "wrkflw_checkpoint_leaves_total",
        "Audit entries in the checkpoints that this host signed.",
    ),
    counter(
        "wrkflw_checkpoint_failures_total",
        "Attempts to sign a checkpoint that failed.",
    ),
    counter(
        "wrkflw_transitions_total",
        "Commands by definition, action and outcome.",
    ),
    histogram(
        "wrkflw_transition_duration_seconds",
        SECONDS,
        "Time that a command took, however it ended.",
    ),
    histogram(
        "wrkflw_guest_duration_seconds",
        GUEST_SECONDS,
        "Time of one evaluation of flow logic.",
    ),
    histogram(
        "wrkflw_guest_fuel",
        FUEL,
        "Fuel that one evaluation of flow logic burned.",
    ),
    counter(
        "wrkflw_guest_failures_total",
        "Evaluations of flow logic that failed, by definition, function and code.",
    ),
    counter(
        "wrkflw_guest_slow_total",
        "Evaluations that took long and were moved to threads of low priority.",
    ),
    counter(
        "wrkflw_guest_growth_refused_total",
        "Evaluations that were refused memory or table entries.",
    ),
    counter(
        "wrkflw_component_lookups_total",
        "Components looked up, by where they were found.",
    ),
    counter(
        "wrkflw_artifacts_quarantined_total",
        "Compiled components quarantined as altered or damaged.",
    ),
    counter(
        "wrkflw_commit_batches_split_total",
        "Batches of commits that failed and were committed one by one.",
    ),
    histogram(
        "wrkflw_batch_items",
        ITEMS,
        "Commands in one statement, by what the statement did.",
    ),
    histogram(
        "wrkflw_batch_wait_seconds",
        WAIT_SECONDS,
        "Time that the oldest command of a statement waited for it.",
    ),
    histogram(
        "wrkflw_group_commit_commands",
        ITEMS,
        "Commands on one instance that were committed and answered together.",
    ),
    counter(
        "wrkflw_instance_cache_total",
        "Uses of cached instances, by whether they were current.",
    ),
    gauge(
        "wrkflw_batch_waiting",
        "Commands that still waited when a statement began.",
    ),
    counter("wrkflw_jobs_total", "Jobs by kind and result."),
    counter(
        "wrkflw_service_calls_total",
        "Attempts to call services that failed, and calls that were answered or given up.",
    ),
    histogram(
        "wrkflw_service_call_seconds",
        SERVICE_SECONDS,
        "Time that an attempt to call a service took.",
    ),
    histogram(
        "wrkflw_job_lateness_seconds",
        LATENESS_SECONDS,
        "Time from when a job was due until its first attempt began, also if it waited for an earlier job of its instance.",
    ),
    gauge(
        "wrkflw_jobs_failing",
        "Jobs of all hosts that failed and wait to be tried again.",
    ),
    gauge(
        "wrkflw_jobs_stuck",
        "Jobs that failed ten times, or that no worker has claimed for five minutes.",
    ),
    counter(
        "wrkflw_states_unassignable_total",
        "Task states for which nobody is eligible, not even by fallback.",
    ),
    gauge("wrkflw_outbox_depth", "Events that wait for Kafka."),
    gauge(
        "wrkflw_outbox_oldest_seconds",
        "Age of the oldest event that waits for Kafka.",
    ),
    counter(
        "wrkflw_relay_published_total",
        "Events that Kafka acknowledged.",
    ),
    counter(
        "wrkflw_relay_failures_total",
        "Events that Kafka did not acknowledge, by class of failure.",
    ),
    histogram(
        "wrkflw_relay_lag_seconds",
        LAG_SECONDS,
        "Time from a command to Kafka's acknowledgement of its event.",
    ),
    gauge("wrkflw_dead_letters", "Events that Kafka refused for good."),
    counter(
        "wrkflw_notifications_total",
        "Notifications that were made.",
    ),
    counter(
        "wrkflw_webhook_deliveries_total",
        "Attempts to deliver to webhooks, by result.",
    ),
    gauge(
        "wrkflw_webhook_pending",
        "Deliveries that wait for their receiver.",
    ),
    gauge(
        "wrkflw_webhook_oldest_seconds",
        "Age of the oldest delivery that waits.",
    ),
    gauge("wrkflw_webhook_dead", "Deliveries that failed for good."),
    gauge(
        "wrkflw_feed_held_seconds",
        "Time that the oldest unfinished transaction of the PostgreSQL server has held back notifications, webhooks, event streams and checkpoints.",
    ),
    counter(
        "wrkflw_requests_refused_total",
        "Requests refused because the host had no place for them, by the limit as reason: full, waited, uploads or forms.",
    ),
    counter(
        "wrkflw_offloaded_total",
        "Calculations of the host that could take long and ran on threads of low priority.",
    ),
    counter(
        "wrkflw_offload_refused_total",
        "Requests refused because their tenant's calculations on these threads waited too long, by reason.",
    ),
    gauge("wrkflw_requests_in_flight", "Requests in flight."),
    gauge("wrkflw_requests_waiting", "Requests that wait for a place."),
    counter(
        "wrkflw_database_outages_total",
        "Responses that the database was unavailable, by kind.",
    ),
    gauge("wrkflw_http_connections", "Open HTTP connections."),
    counter(
        "wrkflw_http_connections_ended_total",
        "HTTP connections that the host closed or refused, by reason.",
    ),
    gauge(
        "wrkflw_pool_connections",
        "Database connections by role and state.",
    ),
];

/// The metrics of this process.
#[derive(Debug, Clone)]
pub struct Metrics(PrometheusHandle);

/// Installs the recorder on the first call. Every call returns the same metrics.
pub fn metrics() -> Result<Metrics, String> {
    static INSTALLED: OnceLock<Result<Metrics, String>> = OnceLock::new();
    INSTALLED.get_or_init(install).clone()
}

impl Metrics {
    /// The metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Sorts samples into buckets from time to time, until `stop`.
    pub async fn upkeep(self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            self.0.run_upkeep();
        }
    }
}

fn install() -> Result<Metrics, String> {
    let mut builder = PrometheusBuilder::new();
    for measure in MEASURES {
        if let Kind::Histogram(buckets) = measure.kind {
            let name = Matcher::Full(measure.name.to_owned());
            builder = builder
                .set_buckets_for_metric(name, buckets)
                .map_err(|error| error.to_string())?;
        }
    }
    let handle = builder
        .install_recorder()
        .map_err(|error| format!("metrics are collected already: {error}"))?;
    for measure in MEASURES {
        match measure.kind {
            Kind::Counter => metrics::describe_counter!(measure.name, measure.help),
            Kind::Gauge => metrics::describe_gauge!(measure.name, measure.help),
            Kind::Histogram(_) => metrics::describe_histogram!(measure.name, measure.help),
        }
    }
    Ok(Metrics(handle))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_is_measured_is_rendered_with_its_description() {
        let first = metrics().unwrap();
        let again = metrics().unwrap();
        metrics::counter!("wrkflw_transitions_total", "definition" => "d\"\n", "action" => "claim", "outcome" => "success")
            .increment(2);
        metrics::histogram!("wrkflw_guest_duration_seconds", "definition" => "measured")
            .record(0.000_15);
        let text = again.render();
        for line in [
            "# HELP wrkflw_transitions_total Commands by definition, action and outcome.",
            "# TYPE wrkflw_guest_duration_seconds histogram",
            "wrkflw_guest_duration_seconds_bucket{definition=\"measured\",le=\"0.0001\"} 0",
            "wrkflw_guest_duration_seconds_bucket{definition=\"measured\",le=\"0.0002\"} 1",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
        assert!(
            text.contains(r#"definition="d\"\n",action="claim",outcome="success"} 2"#),
            "{text}"
        );
        assert!(first.render().contains("wrkflw_transitions_total"));
    }

    #[tokio::test]
    async fn upkeep_ends_when_it_is_told_to() {
        let stop = CancellationToken::new();
        stop.cancel();
        tokio::time::timeout(Duration::from_mins(1), metrics().unwrap().upkeep(stop))
            .await
            .unwrap();
    }

    #[test]
    fn every_metric_of_the_code_is_described_and_used() {
        let mut used = BTreeSet::new();
        collect(
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")),
            &mut used,
        );
        let described: BTreeSet<_> = MEASURES
            .iter()
            .map(|measure| measure.name.to_owned())
            .collect();
        assert_eq!(used, described);
    }

    /// The metric names in a file: the first string after each macro.
    fn collect(path: &Path, used: &mut BTreeSet<String>) {
        if path.is_dir() {
            for entry in std::fs::read_dir(path).unwrap() {
                collect(&entry.unwrap().path(), used);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with(file!().rsplit_once("src/").unwrap().1)
        {
            let text = std::fs::read_to_string(path).unwrap();
            for start in [
                "metrics::counter!(",
                "metrics::gauge!(",
                "metrics::histogram!(",
            ] {
                used.extend(
                    text.split(start)
                        .skip(1)
                        .filter_map(|rest| rest.split('"').nth(1))
                        .map(str::to_owned),
                );
            }
        }
    }
}
