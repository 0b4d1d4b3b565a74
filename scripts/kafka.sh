#!/usr/bin/env bash
# One real Apache Kafka broker (KRaft) on loopback, for tests and for trying things out.
#
#   kafka.sh install              fetch the broker's jars once (55 MB)
#   kafka.sh start [DIR] [PORT]   start a broker; prints its address once it answers
#   kafka.sh stop  [DIR]          end it in good order
#   kafka.sh kill  [DIR]          end it as a crash would
#   kafka.sh topic NAME N [DIR]   create a topic of N partitions, unless it exists
#   kafka.sh tool CLASS ARG...    run one of Kafka's own tools
#
# DIR (default ./.kafka) holds everything the broker writes, and survives stop,
# kill and start. PORT is that of DIR's last start, else 9092; 0 takes a free
# one. The port after it is the controller's. With KAFKA_OWNER_PID set, the
# broker ends when that process does. With KAFKA_ADVERTISED_PORT set, it sends its
# clients to that port, behind which somebody must lead to it. Needs Java 17 and Maven.
set -euo pipefail

version=${KAFKA_VERSION:-4.1.0}
cache=${XDG_CACHE_HOME:-$HOME/.cache}
libs=${KAFKA_LIBS:-$cache/kafka-$version}
start_seconds_max=60
stop_seconds_max=30
port_tries_max=20
java_opts=(-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1)

say() { echo "kafka: $*" >&2; }
fail() { say "$*"; exit 1; }

# --- The jars -----------------------------------------------------------------

pom() {
  cat <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>broker</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
$(dependency org.apache.kafka kafka_2.13 "$version")
$(dependency org.apache.kafka kafka-tools "$version")
$(dependency org.apache.logging.log4j log4j-slf4j-impl 2.24.3)
$(dependency org.apache.logging.log4j log4j-core 2.24.3)
  </dependencies>
</project>
POM
}

dependency() { echo "    <dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }

install() {
  [ -e "$libs/.complete" ] && return
  command -v java >/dev/null && command -v mvn >/dev/null || fail "needs Java 17 or newer and Maven: run scripts/setup.sh test"
  mkdir -p "$(dirname "$libs")"
  if command -v flock >/dev/null; then
    exec 8>"$libs.lock"
    flock 8
    [ -e "$libs/.complete" ] && return
  fi
  say "fetching Kafka $version"
  local work
  work=$(mktemp -d "$libs.XXXXXX")
  pom >"$work/pom.xml"
  mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work" >&2 8>&- ||
    { rm -rf "$work"; fail "Maven could not fetch Kafka $version"; }
  touch "$work/.complete"
  rm -rf "$libs"
  mv "$work" "$libs"
  exec 8>&-
}

run_java() { java "${java_opts[@]}" -cp "$libs/*" "$@"; }

# --- The broker ---------------------------------------------------------------

# Prints the broker's pid, if it is alive. A pid file may outlive its process, and the pid may belong to another process by now.
broker_pid() {
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) && [ -n "$pid" ] || return 1
  grep -qF -- "$1/server.properties" < <(ps -ww -o args= -p "$pid" 2>/dev/null) || return 1
  echo "$pid"
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() {
  local port tries=0
  while [ $((tries += 1)) -le "$port_tries_max" ]; do
    # Even, and below the range from which systems assign ports themselves.
    port=$((12000 + (RANDOM % 9000) * 2))
    answers "$port" || answers $((port + 1)) || { echo "$port"; return; }
  done
  fail "found no free port in $port_tries_max tries"
}

# One partition and replica for Kafka's internal topics, and short waits: a single node for tests. It makes topics as Kafka does by
# default, so a host that lets it make one gets fewer partitions than promised.
settings() {
  cat <<CONF
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$(($2 + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:${KAFKA_ADVERTISED_PORT:-$2}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$(($2 + 1))
log.dirs=$1/data
num.partitions=1
auto.create.topics.enable=true
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=2000
CONF
}

log_settings() {
  cat <<'CONF'
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
# The log line by which wait_ready sees that the broker serves.
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=info
CONF
}

cluster_id() { head -c 16 /dev/urandom | base64 | tr '+/' 'Aa' | tr -d '='; }

format() {
  [ -e "$1/data/meta.properties" ] && return
  run_java kafka.tools.StorageTool format -t "$(cluster_id)" -c "$1/server.properties" >"$1/format.log" 2>&1 ||
    { cat "$1/format.log" >&2; fail "could not format $1/data"; }
}

start() {
  local dir=${1:-.kafka} port=${2:-} pid
  install
  mkdir -p "$dir"
  dir=$(realpath "$dir")
  if broker_pid "$dir" >/dev/null; then
    say "already running in $dir"
    echo "127.0.0.1:$(cat "$dir/port")"
    return
  fi
  [ -n "$port" ] || port=$(cat "$dir/port" 2>/dev/null || echo 9092)
  [ "$port" != 0 ] || port=$(free_port)
  settings "$dir" "$port" >"$dir/server.properties"
  log_settings >"$dir/log4j2.properties"
  java_opts+=("-Dlog4j2.configurationFile=$dir/log4j2.properties")
  format "$dir"
  echo "$port" >"$dir/port"
  local log_seen
  log_seen=$(wc -c 2>/dev/null <"$dir/kafka.log" || echo 0)
  # In a separate session, so that an interrupt from the terminal reaches it only through its owner.
  setsid java "${java_opts[@]}" -cp "$libs/*" kafka.Kafka "$dir/server.properties" >>"$dir/kafka.log" 2>&1 </dev/null &
  pid=$!
  echo "$pid" >"$dir/pid"
  end_with_owner "$pid"
  wait_ready "$dir" "$port" "$pid" "$log_seen"
}

end_with_owner() {
  local owner=${KAFKA_OWNER_PID:-} broker=$1
  [ -n "$owner" ] || return 0
  setsid bash -c 'while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 1; done; kill -KILL "$2" 2>/dev/null' \
    kafka-owner-watch "$owner" "$broker" >/dev/null 2>&1 </dev/null &
}

# Only the broker's own log counts: an open port could be another process's, or that of a killed broker that is still ending.
wait_ready() {
  local dir=$1 port=$2 pid=$3 log_seen=$4 deadline=$((SECONDS + start_seconds_max))
  until grep -q 'Kafka Server started' < <(tail -c "+$((log_seen + 1))" "$dir/kafka.log"); do
    alive "$pid" || { tail -20 "$dir/kafka.log" >&2; fail "the broker ended while it started"; }
    [ "$SECONDS" -lt "$deadline" ] || fail "not ready within $start_seconds_max s, see $dir/kafka.log"
    sleep 0.1
  done
  echo "127.0.0.1:$port"
}

# A zombie has closed its sockets and files, so it counts as ended, even if it was not reaped.
alive() {
  case $(ps -o stat= -p "$1" 2>/dev/null) in '' | Z*) return 1 ;; esac
}

stop() {
  local dir=${1:-.kafka} signal=$2 pid deadline=$((SECONDS + stop_seconds_max))
  [ -d "$dir" ] || return 0
  dir=$(realpath "$dir")
  pid=$(broker_pid "$dir") || { rm -f "$dir/pid"; return 0; }
  kill "-$signal" "$pid"
  while alive "$pid"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "the broker (pid $pid) did not end within $stop_seconds_max s"
    sleep 0.1
  done
  rm -f "$dir/pid"
}

topic() {
  local name=$1 partitions=$2 dir=${3:-.kafka}
  install
  run_java org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$(cat "$dir/port")" \
    --create --if-not-exists --topic "$name" --partitions "$partitions" >&2
}

usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }

case ${1:-} in
  install) install ;;
  start) start "${2:-}" "${3:-}" ;;
  stop) stop "${2:-}" TERM ;;
  kill) stop "${2:-}" KILL ;;
  topic) [ $# -ge 3 ] || usage; shift; topic "$@" ;;
  tool) install; shift; run_java "$@" ;;
  *) usage ;;
esac
