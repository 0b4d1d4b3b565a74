//! The command line. One file per noun. Most commands call the API ([`client`]) and pass the response to [`output`].
//!
//! `dev` and `serve` run a [`host`] in this process. `migrate`, `doctor`, `audit verify` and `audit export` use the database, and
//! `plugin` works on files. The environment is read here, once, and passed on.

mod absence;
mod answer;
mod approval;
mod argument;
mod audit;
mod calendar;
mod client;
mod connection;
mod dead_letter;
mod definition;
mod demo;
mod dev;
mod dev_settings;
mod digits;
mod directory;
mod doctor;
mod embed_token;
mod entity;
mod events;
mod failure;
mod flow_config;
mod home;
mod host;
mod hosts;
mod instance;
mod job;
mod me;
mod migrate;
mod notification;
mod operation;
pub mod output;
mod pick;
mod plugin;
mod postgres;
mod reference;
mod refusal;
mod running;
mod samples;
mod saved_view;
mod series;
mod serve;
mod session;
mod settings;
mod signal;
mod subscription;
mod task;
mod token;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::failure::{Exit, Failure};
use self::output::{Format, Output};
use crate::config::layers::{self, LayerError, PREFIX, ResolvedSettings, Sources};
use crate::config::{Settings, SettingsError};
use wrkflw_sandbox::Compiler;

/// A workflow engine for work that people decide.
#[derive(Debug, Parser)]
#[command(name = "wrkflw", version, after_help = failure::AFTER_HELP)]
struct Cli {
    /// How data is written to standard output
    #[arg(
        long,
        global = true,
        value_enum,
        env = "WRKFLW_OUTPUT",
        default_value = "table"
    )]
    output: Format,
    /// No hints and no progress
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything on this machine: database, sample flow, demo people
    Dev(dev::DevArgs),
    /// Show an approval by the people of `wrkflw dev`, command by command
    Demo(approval::DemoArgs),
    /// Run a host: the API, the relay, timers and the notifier, as the settings say
    Serve(Box<serve::ServeArgs>),
    /// Migrate the database to this version
    Migrate(Box<migrate::MigrateArgs>),
    /// Definitions and their versions
    #[command(subcommand)]
    Definition(definition::DefinitionCommand),
    /// Instances
    #[command(subcommand)]
    Instance(instance::InstanceCommand),
    /// Bulk operations: commands on many instances, in the background
    #[command(subcommand)]
    Operation(operation::OperationCommand),
    /// Tasks
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Your saved views of the list of tasks
    #[command(subcommand)]
    SavedView(saved_view::SavedViewCommand),
    /// Signals
    #[command(subcommand)]
    Signal(signal::SignalCommand),
    /// Your notifications
    #[command(subcommand)]
    Notification(notification::NotificationCommand),
    /// Entities: their history over all instances
    #[command(subcommand)]
    Entity(entity::EntityCommand),
    /// A token by which a page of a product shows one instance to a person
    EmbedToken(embed_token::EmbedTokenArgs),
    /// Your identity, roles and permissions
    Me(me::MeArgs),
    /// The browsers in which you are signed in
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// People
    #[command(subcommand)]
    Person(directory::PersonCommand),
    /// Groups and their members
    #[command(subcommand)]
    Group(directory::GroupCommand),
    /// Roles and what they permit
    #[command(subcommand)]
    Role(directory::RoleCommand),
    /// Absences and substitutes
    #[command(subcommand)]
    Absence(absence::AbsenceCommand),
    /// Working calendars
    #[command(subcommand)]
    Calendar(calendar::CalendarCommand),
    /// Webhooks
    #[command(subcommand)]
    Subscription(subscription::SubscriptionCommand),
    /// Events
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Background jobs: those that fail, and those that are due next
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Hosts that run
    #[command(subcommand)]
    Host(hosts::HostCommand),
    /// Figures over time: what was decided, started and refused, and what waits
    #[command(subcommand)]
    Series(series::SeriesCommand),
    /// Commands refused because the caller was not allowed to run them
    #[command(subcommand)]
    Refusal(refusal::RefusalCommand),
    /// Events that Kafka refused permanently
    #[command(subcommand)]
    DeadLetter(dead_letter::DeadLetterCommand),
    /// The audit
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Print a bearer token
    Token(Box<token::TokenArgs>),
    /// Write, test and build flow logic
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Check what a host, a client and the author of a plugin need here
    Doctor(Box<doctor::DoctorArgs>),
    /// Print the script that completes commands in a shell
    Completions(reference::CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    Man(reference::ManArgs),
    /// Settings of a host
    #[command(subcommand)]
    Config(settings::ConfigCommand),
}

/// The environment of commands, besides the settings.
#[derive(Debug, Clone)]
struct Environment {
    /// The folder for this user's program state.
    state: Option<PathBuf>,
    /// This program, which is started again to compile components.
    program: PathBuf,
    /// Whether the shell finds this program by its name.
    in_path: bool,
    /// Whether cargo started this program. Then the environment has the settings of that build.
    under_cargo: bool,
    /// Prints hints about the environment.
    output: Output,
}

impl Environment {
    /// A copy that prints no hints.
    fn without_hints(&self) -> Environment {
        let output = Output {
            quiet: true,
            ..self.output
        };
        Environment {
            output,
            ..self.clone()
        }
    }

    /// The compiler for components that the user may not trust: a child process.
    fn compiler(&self) -> Compiler {
        Compiler::Child(self.program.clone())
    }
}

/// The command line as clap knows it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command in the arguments.
pub fn main() -> ExitCode {
    main_with(|_| ())
}

/// Like [`main`], but changes the settings of `serve`. Some tests need shorter times than any setting allows.
pub fn main_with(change: impl FnOnce(&mut Settings)) -> ExitCode {
    let variables = variables();
    let fallback = Output::new(Format::Table, false, variables.no_colour);
    let sources = Sources {
        arguments: connection::behind_the_command(std::env::args_os().collect()),
        variables: variables.ours,
    };
    let resolved = match layers::resolve(command(), &sources) {
        Ok(resolved) => resolved,
        Err(LayerError::Clap(error)) => error.exit(),
        Err(LayerError::Settings(error)) => return finish(fallback, Err(error.into())),
    };
    let mut cli = match Cli::from_arg_matches(&resolved.matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    if let Command::Serve(args) = &mut cli.command {
        change(&mut args.settings);
    }
    let output = Output::new(cli.output, cli.quiet, variables.no_colour);
    resolved
        .unknown
        .iter()
        .for_each(|unknown| Output::warn(unknown));
    let program = std::env::current_exe().context("cannot determine the path of this program");
    let result = program.and_then(|program| {
        let in_path = variables.path.iter().any(|folder| {
            folder
                .join("wrkflw")
                .canonicalize()
                .is_ok_and(|found| found == program)
        });
        let environment = Environment {
            state: variables.state,
            program,
            in_path,
            under_cargo: variables.under_cargo,
            output,
        };
        run(cli.command, &resolved, output, &environment)
    });
    finish(output, result)
}

fn run(
    command: Command,
    resolved: &ResolvedSettings,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        Command::Dev(args) => dev::run(args, output, environment),
        Command::Demo(args) => approval::run(args, resolved, output, environment),
        Command::Serve(args) => serve::run(*args, output, environment),
        Command::Migrate(args) => migrate::run(&args, output),
        Command::Definition(command) => definition::run(command, output, environment),
        Command::Instance(command) => instance::run(command, output, environment),
        Command::Operation(command) => operation::run(command, output, environment),
        Command::Task(command) => task::run(command, output, environment),
        Command::SavedView(command) => saved_view::run(command, output, environment),
        Command::Session(command) => session::run(command, output, environment),
        Command::Signal(command) => signal::run(command, output, environment),
        Command::Notification(command) => notification::run(command, output, environment),
        Command::Entity(command) => entity::run(command, output, environment),
        Command::EmbedToken(args) => embed_token::run(&args, output, environment),
        Command::Me(args) => me::run(&args, output, environment),
        Command::Person(command) => directory::person(command, output, environment),
        Command::Group(command) => directory::group(command, output, environment),
        Command::Role(command) => directory::role(command, output, environment),
        Command::Absence(command) => absence::run(command, output, environment),
        Command::Calendar(command) => calendar::run(command, output, environment),
        Command::Subscription(command) => subscription::run(command, output, environment),
        Command::Events(command) => events::run(command, output, environment),
        Command::Job(command) => job::run(command, output, environment),
        Command::Host(command) => hosts::run(command, output, environment),
        Command::Series(command) => series::run(command, output, environment),
        Command::Refusal(command) => refusal::run(command, output, environment),
        Command::DeadLetter(command) => dead_letter::run(command, output, environment),
        Command::Audit(command) => audit::run(command, output, environment),
        Command::Token(args) => token::run(&args, output, environment),
        Command::Plugin(command) => plugin::run(command, output, environment),
        Command::Doctor(args) => doctor::run(*args, output, environment),
        Command::Completions(args) => reference::completions(&args, output),
        Command::Man(args) => reference::man(&args, output),
        Command::Config(command) => settings::run(&command, resolved, output),
    }
}

fn finish(output: Output, result: Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    output.failure(&error);
    let exit = match error.downcast_ref::<Failure>() {
        Some(failure) => failure.exit,
        None if error.is::<SettingsError>() => Exit::Usage,
        None => Exit::Failed,
    };
    ExitCode::from(exit as u8)
}

struct Variables {
    ours: BTreeMap<String, String>,
    state: Option<PathBuf>,
    path: Vec<PathBuf>,
    no_colour: bool,
    under_cargo: bool,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the environment is read"
)]
fn variables() -> Variables {
    let path = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let text = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Variables {
        ours: text.filter(|(name, _)| name.starts_with(PREFIX)).collect(),
        state: connection::state_folder(path("XDG_STATE_HOME"), path("HOME")),
        path: std::env::var_os("PATH")
            .map(|path| std::env::split_paths(&path).collect())
            .unwrap_or_default(),
        no_colour: path("NO_COLOR").is_some(),
        under_cargo: path("CARGO").is_some(),
    }
}

/// How long the process waits at its end for abandoned blocking work, such as the look-up of a host's address.
const ABANDONED_MAX: Duration = Duration::from_secs(1);

/// Runs a future on a new runtime.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(future);
    runtime.shutdown_timeout(ABANDONED_MAX);
    ended
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_end_does_not_wait_for_blocking_work_that_was_given_up() {
        let (held, release) = mpsc::channel::<()>();
        let (done, ended) = mpsc::channel();
        let run = block_on(async move {
            let (begin, has_begun) = tokio::sync::oneshot::channel();
            drop(tokio::task::spawn_blocking(move || {
                let _ = begin.send(());
                let _ = release.recv_timeout(Duration::from_secs(30));
                let _ = done.send(());
            }));
            Ok(has_begun.await?)
        });
        run.expect("it ends");
        assert_eq!(ended.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(held);
        ended.recv().expect("it ends after its work is done");
    }
}
