mod sandbox;
mod support;
