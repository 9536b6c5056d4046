// What durability costs: submits and whole jobs through the SQLite store in batches, as group
// commit makes them; recovery with a history behind it; the simulated disk and store of the tests.
// The directory decides: BERTH_BENCH_DIRECTORY (default: the working directory).
//   store_bench --benchmark_filter=Commit
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "store/sqlite_store.h"
#include "support/random_history.h"
#include "support/sim_store.h"

namespace berth {
namespace {

/// A store in a fresh directory that goes with it.
class Bench {
 public:
  Bench() {
    const char* base = std::getenv("BERTH_BENCH_DIRECTORY");
    directory_ = fmt::format("{}/berth-store-bench-{}", base == nullptr ? "." : base, ::getpid());
    std::filesystem::remove_all(directory_);
    open();
    add(LifeRecord{.generation = 1});
    commit();
  }
  ~Bench() {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void open() {
    store_.reset();
    store_ = *SqliteStore::open({.directory = directory_});
    ledger_ = *store_->recover();
  }
  void add(RecordBody body) {
    now_ += std::chrono::milliseconds{1};
    const Record record{now_, now_.time_since_epoch().count(), std::move(body)};
    if (!store_->append(record, *ledger_.apply(record))) std::abort();
  }
  void commit() {
    if (!store_->commit()) std::abort();
  }
  void submit(const JobSpec& spec) { add(SubmitRecord{ledger_.next_number(), spec}); }
  void run_last() {
    const JobNumber job = ledger_.next_number() - 1;
    const AttemptId attempt{ledger_.generation(), ledger_.last_attempt().counter + 1};
    add(IntentRecord{.job = job, .attempt = attempt, .where = {{"n1", {0}, {}}}, .gpus = 1});
    add(EndRecord{.job = job, .attempt = attempt, .outcome = Outcome::Completed, .gpu_seconds = 5});
  }
  SqliteStore& store() { return *store_; }

 private:
  std::string directory_;
  std::unique_ptr<SqliteStore> store_;
  Ledger ledger_;
  Time now_{};
};

JobSpec usual_job() {
  JobSpec spec;
  spec.script = "#!/bin/bash\n#SBATCH --gres=gpu:2\nmodule load cuda\npython train.py --lr 0.1\n";
  spec.workdir = "/home/ann/project";
  spec.name = "train";
  spec.user = "ann";
  spec.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/home/ann"}, {"LANG", "C.UTF-8"}};
  return spec;
}

/// So many submits in one commit, each acknowledged by it.
void CommitSubmits(benchmark::State& state) {
  Bench bench;
  const JobSpec spec = usual_job();
  for (auto unused : state) {
    static_cast<void>(unused);
    for (std::int64_t i = 0; i < state.range(0); ++i) bench.submit(spec);
    bench.commit();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(CommitSubmits)->Arg(1)->Arg(16)->Arg(100)->UseRealTime()->Unit(benchmark::kMillisecond);

/// Submit, intent and end of as many jobs in one commit.
void CommitWholeJobs(benchmark::State& state) {
  Bench bench;
  const JobSpec spec = usual_job();
  for (auto unused : state) {
    static_cast<void>(unused);
    for (std::int64_t i = 0; i < state.range(0); ++i) {
      bench.submit(spec);
      bench.run_last();
    }
    bench.commit();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(CommitWholeJobs)->Arg(16)->Arg(100)->UseRealTime()->Unit(benchmark::kMillisecond);

void CommitAnArrayOf10000(benchmark::State& state) {
  Bench bench;
  JobSpec spec = usual_job();
  spec.array = *parse_array("0-9999");
  for (auto unused : state) {
    static_cast<void>(unused);
    bench.submit(spec);
    bench.commit();
  }
}
BENCHMARK(CommitAnArrayOf10000)->UseRealTime()->Unit(benchmark::kMillisecond);

/// 100,000 finished and 10,000 queued jobs: opening, recovering, and a few questions.
void Recover(benchmark::State& state) {
  Bench bench;
  const JobSpec spec = usual_job();
  for (int i = 0; i < 100'000; ++i) {
    bench.submit(spec);
    bench.run_last();
    if (i % 1'000 == 999) bench.commit();
  }
  for (int i = 0; i < 10'000; ++i) bench.submit(spec);
  bench.commit();
  for (auto unused : state) {
    static_cast<void>(unused);
    bench.open();
  }
}
BENCHMARK(Recover)->Iterations(3)->UseRealTime()->Unit(benchmark::kMillisecond);

void ApplySubmit(benchmark::State& state) {
  Ledger ledger;
  const Record life{Time{}, 0, LifeRecord{.generation = 1}};
  benchmark::DoNotOptimize(ledger.apply(life));
  Record record{Time{}, 0, SubmitRecord{1, usual_job()}};
  for (auto unused : state) {
    static_cast<void>(unused);
    std::get<SubmitRecord>(record.body).first = ledger.next_number();
    benchmark::DoNotOptimize(ledger.apply(record));
  }
}
BENCHMARK(ApplySubmit);

/// The disk of section 5 of the crash tests: a write of 200 bytes and a sync are two operations.
void SimulatedDisk(benchmark::State& state) {
  test::SimDisk disk;
  if (!disk.create("journal")) std::abort();
  const std::string bytes(200, 'x');
  std::size_t end = 0;
  for (auto unused : state) {
    static_cast<void>(unused);
    if (!disk.write("journal", end, bytes) || !disk.sync("journal")) std::abort();
    end = end > (1U << 24U) ? 0 : end + bytes.size();
  }
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(SimulatedDisk);

void SimulatedStore(benchmark::State& state) {
  test::SimDisk disk;
  test::SimStore store(disk);
  Ledger ledger = *store.recover();
  test::RandomHistory history(1);
  for (auto unused : state) {
    static_cast<void>(unused);
    const Record record = history.next(ledger);
    if (!store.append(record, *ledger.apply(record)) || !store.commit()) std::abort();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(SimulatedStore);

}  // namespace
}  // namespace berth

BENCHMARK_MAIN();
