//! Log lines on stderr, as text or as one JSON object each. Stdout is for data only.

use std::io::{self, IsTerminal as _};
use std::str::FromStr;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{Directive, EnvFilter};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer, Registry, fmt, registry::LookupSpan};

/// The target of the log line of each command. No filter suppresses it.
pub const COMMAND_TARGET: &str = "wrkflw::command";

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    #[default]
    Human,
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<LogFormat, String> {
        match text {
            "human" => Ok(LogFormat::Human),
            "json" => Ok(LogFormat::Json),
            other => Err(format!(
                "\"{other}\" is no log format: choose human or json"
            )),
        }
    }
}

/// The filter and the format of the log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub format: LogFormat,
    /// Directives such as `info` or `warn,wrkflw::outbox=debug`.
    pub filter: String,
}

impl Default for LogSettings {
    fn default() -> LogSettings {
        LogSettings {
            format: LogFormat::default(),
            filter: "info".to_owned(),
        }
    }
}

impl LogSettings {
    /// Whether the filter can be read.
    pub fn check(&self) -> Result<(), String> {
        filter(&self.filter).map(drop)
    }
}

pub(super) fn install(settings: &LogSettings) -> Result<(), String> {
    let subscriber = subscriber(settings, io::stderr, io::stderr().is_terminal())?;
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| format!("the log is set up already: {error}"))
}

fn subscriber<W>(
    settings: &LogSettings,
    writer: W,
    colours: bool,
) -> Result<impl Subscriber + use<W>, String>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = filter(&settings.filter)?;
    Ok(tracing_subscriber::registry()
        .with(lines::<Registry, W>(settings.format, writer, colours).with_filter(filter)))
}

fn lines<S, W>(format: LogFormat, writer: W, colours: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer);
    match format {
        LogFormat::Human => lines.with_ansi(colours).boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed(),
    }
}

fn filter(directives: &str) -> Result<EnvFilter, String> {
    let builder = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .with_regex(false);
    let filter = builder
        .parse(directives)
        .map_err(|error| format!("the log filter \"{directives}\" is wrong: {error}"))?;
    let always = format!("{COMMAND_TARGET}=info")
        .parse::<Directive>()
        .expect("the directive is well-formed");
    Ok(filter.add_directive(always))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(format: LogFormat, filter: &str, emit: impl FnOnce()) -> String {
        let paper = Paper::default();
        let to = paper.clone();
        let settings = LogSettings {
            format,
            filter: filter.to_owned(),
        };
        let subscriber = subscriber(&settings, move || to.clone(), false).unwrap();
        tracing::subscriber::with_default(subscriber, emit);
        let bytes = paper.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_filter_silences_commands() {
        for filter in [
            "",
            "off",
            "error",
            "wrkflw=off",
            "wrkflw::command=off",
            "info,wrkflw::command=error",
        ] {
            let lines = written(LogFormat::Human, filter, || {
                tracing::info!(target: COMMAND_TARGET, "decide success");
                tracing::debug!("chatter");
            });
            assert!(lines.contains("decide success"), "{filter}");
            assert!(!lines.contains("chatter"), "{filter}");
        }
    }

    #[test]
    fn json_lines_hold_their_fields_at_the_top() {
        let line = written(LogFormat::Json, "info", || {
            tracing::info!(target: COMMAND_TARGET, durationMs = 7_u64, outcome = "success", "decide success\nforged");
        });
        assert_eq!(line.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["durationMs"], 7);
        assert_eq!(value["outcome"], "success");
        assert_eq!(value["target"], COMMAND_TARGET);
    }

    #[test]
    fn a_wrong_filter_is_named() {
        let error = filter("wrkflw=loud").err().unwrap();
        assert!(
            error.starts_with("the log filter \"wrkflw=loud\" is wrong"),
            "{error}"
        );
        assert!(
            "xml"
                .parse::<LogFormat>()
                .unwrap_err()
                .contains("human or json")
        );
    }
}
