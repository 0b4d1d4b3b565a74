# The options of rustc by which a crate tells libFuzzer where an input has been. Sourced, not run.
coverage=(
  -C passes=sancov-module
  -C llvm-args=-sanitizer-coverage-level=4
  -C llvm-args=-sanitizer-coverage-inline-8bit-counters
  -C llvm-args=-sanitizer-coverage-pc-table
  -C llvm-args=-sanitizer-coverage-trace-compares
)
