//! The program from a user's side: arguments in; data, hints and an exit code out.

mod audit;
mod blurred;
mod dev;
mod doctor;
mod languages;
mod names;
mod operations;
mod operators;
mod pages;
mod plain;
mod plugin;
mod program;
mod ready;
mod reference;
mod samples;
mod scenarios;
mod scripted;
mod starts;
mod usage;
mod webhooks;
