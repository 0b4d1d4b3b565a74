# The options of rustc that add the coverage counters of libFuzzer to a crate. Sourced, not run.
coverage=(
  -C passes=sancov-module
  -C llvm-args=-sanitizer-coverage-level=4
  -C llvm-args=-sanitizer-coverage-inline-8bit-counters
  -C llvm-args=-sanitizer-coverage-pc-table
  -C llvm-args=-sanitizer-coverage-trace-compares
)
