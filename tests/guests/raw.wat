;; A handwritten flow, for behaviour that no compiler of a normal language generates. It is correct until a test inserts
;; code at a placeholder such as {{so}}. `tests/support/raw.rs` inserts it and lays out the data.
;;
;; The flow: `Work`, a task of the reviewers, goes on `GO` to `Done`.
(module
  (memory (export "memory") {{memory}})
  (global $heap (mut i32) (i32.const 0x10000))
  (global $described i32 (i32.const {{described}}))
  (global $verdict i32 (i32.const {{verdict}}))
  (global $plan i32 (i32.const {{plan}}))
  (global $work i32 (i32.const {{work}}))
  (data (i32.const 0x8000) "{{data}}")
  {{also}}
  ;; Frees nothing, because an instance lives for one call.
  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    {{realloc}}
    (local.set $at (i32.and
      (i32.sub (i32.add (global.get $heap) (local.get $align)) (i32.const 1))
      (i32.sub (i32.const 0) (local.get $align))))
    (global.set $heap (i32.add (local.get $at) (local.get $size)))
    (local.get $at))
  (func (export "wrkflw:flow/logic@0.1.0#describe") (param i32 i32) (result i32)
    {{describe}}
    (global.get $described))
  (func (export "wrkflw:flow/logic@0.1.0#start") (param i32) (result i32)
    {{start}}
    (global.get $verdict))
  (func (export "wrkflw:flow/logic@0.1.0#transition") (param i32) (result i32)
    (local $n i32)
    {{transition}}
    (global.get $plan))
  (func (export "wrkflw:flow/logic@0.1.0#enter") (param i32) (result i32)
    (global.get $work))
  (func (export "cabi_post_wrkflw:flow/logic@0.1.0#transition") (param i32)
    {{after}}))
