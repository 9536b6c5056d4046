#include "slurm_host/host_maker.h"

#include "slurm_host/slurm_host.h"

namespace berth {

namespace {

/// A host and the link that it speaks by.
class LinkedSlurmHost final : public Host {
 public:
  LinkedSlurmHost(std::shared_ptr<slurm::Link> link, SlurmHost::Parts parts, const Ledger& ledger)
      : link_(std::move(link)), host_(std::move(parts), ledger) {}
  [[nodiscard]] SlurmHost& host() noexcept { return host_; }

  [[nodiscard]] Result<void> launch(const LaunchOrder& order) override {
    return host_.launch(order);
  }
  void stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) override {
    host_.stop(attempt, how, grace_seconds);
  }
  void stop_for_good(AttemptId attempt, std::int64_t grace_seconds) override {
    host_.stop_for_good(attempt, grace_seconds);
  }
  void suspend(AttemptId attempt) override { host_.suspend(attempt); }
  void resume(AttemptId attempt) override { host_.resume(attempt); }
  void signal(AttemptId attempt, int number) override { host_.signal(attempt, number); }
  void signal_shell(AttemptId attempt, int number) override { host_.signal_shell(attempt, number); }
  void set_cores(AttemptId, const std::vector<std::int32_t>&) override {}
  void set_rate(AttemptId, std::int32_t) override {}
  void set_limit(AttemptId, std::int64_t) override {}
  [[nodiscard]] Result<Finding> look(JobNumber job, AttemptId attempt) override {
    return host_.look(job, attempt);
  }
  void forget(AttemptId attempt) override { host_.forget(attempt); }

 private:
  std::shared_ptr<slurm::Link> link_;
  SlurmHost host_;
};

}  // namespace

HostMaker slurm_host_maker(std::shared_ptr<slurm::Link> link, SlurmHostOptions options) {
  return
      [link = std::move(link), options](const HostWorld& world) -> Result<std::unique_ptr<Host>> {
        auto made = std::make_unique<LinkedSlurmHost>(
            link,
            SlurmHost::Parts{
                .link = *link,
                .cluster = world.cluster,
                .journal = world.journal,
                .job = [&board = world.board](JobNumber job) { return board.find(job); },
                .past_key = [&store = world.store](
                                const std::string& user,
                                const std::string& key) { return store.by_key(user, key); },
                .setting = [&board =
                                world.board](const std::string& key) { return board.setting(key); },
                .tell = world.tell,
                .now = [&clock = world.clock] { return clock.wall() / 1'000'000; },
                .log = &world.log,
                .limit = &world.limit,
                .rules = options.rules},
            world.ledger);
        if (!made->host().turn())
          BERTH_LOG(world.log, Warn, "slurm",
                    "Slurm does not answer: what runs there is not known yet");
        made->host().start_polling(options.every);
        return made;
      };
}

}  // namespace berth
