// A whole scheduler in one thread: the real engine, policies, gates, supervisor, journal writer and
// service over a simulated clock, disk and host. People act by a script; the scheduler may be
// killed, or the power lost, at any named point, and is begun again on what is left. Deterministic
// by its seed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/admission.h"
#include "daemon/job_supervisor.h"
#include "daemon/live_service.h"
#include "daemon/message_queue.h"
#include "daemon/scheduler.h"
#include "daemon/status_board.h"
#include "support/honest_training.h"
#include "support/sim_disk.h"
#include "support/sim_host.h"
#include "support/sim_store.h"
#include "support/wild_training.h"

namespace berth::test {

/// How late the scheduler wakes, whatever woke it. The world goes on meanwhile.
struct Oversleeping {
  std::int64_t most_micros = 0;  // each time by 1 to so many; 0 = never
  double seconds = 0;            // so often (0 to 1) by up to ten seconds: a busy machine
  double hours = 0;              // so often by up to six hours: it was stopped or suspended
  double in_passes = 0;          // so often at a named point processes go on by up to ten seconds
};

enum class CrashKind : std::uint8_t {
  Kill,        // the process dies; disk cache and jobs live on
  Power,       // the machine: unsynced bytes and all jobs are gone
  Controller,  // the scheduler's machine: unsynced bytes are gone, jobs live on
};

struct WorldOptions {
  std::string cluster = "2x4";
  SchedulerOptions scheduling = {};
  AdmissionOptions admission = {};
  ServiceOptions service = {};  // unless told otherwise every name is a user, in no Unix group
  SimHost::Options host = {};
  std::uint64_t seed = 1;
  std::function<void(Cluster&)> edit_cluster = {};
  double deadline = 1e12;  // seconds after which every job must be over
  bool keeps_log = false;  // the last events, for people
  std::function<std::unique_ptr<Policy>(std::unique_ptr<Policy>)> around_policy = {};
  Oversleeping oversleeping = {};
  bool hears_nonsense = false;             // jobs report late, never or nonsense; otherwise never
  bool hears_progress = false;             // jobs say how fast they get on, and that is true
  HonestOptions honest = {};               // and when
  TrainingChannel* training = nullptr;     // what training code says
  std::optional<PowerOptions> power = {};  // programs: see set_program()
  bool asks_policy = false;                // before a job is taken: only for submit_async()
  bool expects_bad_jobs = false;           // otherwise it is a violation that one is set aside
};

struct CrashHere {};  // thrown at a crash point

class LiveWorld final : public ClockSource {
 public:
  explicit LiveWorld(WorldOptions options);
  ~LiveWorld() override;

  using ScriptStep = std::function<void(LiveService&)>;
  /// Somebody does this after so many seconds of the world, and does it again if the scheduler dies
  /// meanwhile.
  void at(double seconds, ScriptStep step);
  /// The scheduler dies when it passes the n-th crash point of its life (from 1).
  void crash_at(std::uint64_t point, CrashKind kind);
  /// Somebody else does this at the n-th passing of a point, between the two steps it stands
  /// between; once.
  void at_point(std::string name, std::uint64_t passing, ScriptStep step);
  /// The scheduler dies at this second of the world.
  void crash_at_time(double seconds, CrashKind kind);
  /// The disk fails after so many operations; the scheduler must leave, and unsynced bytes are
  /// lost.
  void fail_disk_after(std::uint64_t operations, DiskFault fault);
  /// Inside a step: the configuration is read again, and says this.
  void set_options(const SchedulerOptions& options);
  void jump_wall_clock(double seconds) { wall_offset_ += static_cast<std::int64_t>(seconds * 1e6); }
  void set_space_left(std::uint64_t bytes);
  /// One life of the scheduler: until nothing will ever happen any more, or a crash. True: a crash.
  [[nodiscard]] bool live();
  /// Between two lives: the journal gets a record that an older version would have written.
  void plant(RecordBody body);
  /// Between two lives: the machine is another one at the next start.
  void set_cluster(const std::string& cluster) { cluster_ = *load_cluster(cluster); }
  /// What a program does to the machine of a node: `seconds` later it is off or on, unless the
  /// program fails. Asked with "suspend", "resume" or "check", and the node's name.
  struct ProgramBehaviour {
    double seconds = 1;
    bool fails = false;
    bool hangs = false;  // until it is killed
  };
  void set_program(
      std::function<ProgramBehaviour(const std::string& what, const std::string& node)> behaviour) {
    program_ = std::move(behaviour);
  }
  /// What programs were asked for, in all lives: "suspend n0".
  [[nodiscard]] const std::vector<std::string>& asked() const noexcept { return asked_; }
  /// Between two lives: jobs go on, nobody watches.
  void stay_dead_until(double seconds);
  /// Lives until one ends by itself.
  void run(int most_crashes = 100);

  [[nodiscard]] double seconds() const noexcept { return static_cast<double>(micros_) * 1e-6; }
  [[nodiscard]] SimHost& host() noexcept { return host_; }
  [[nodiscard]] std::uint64_t points_passed() const noexcept {
    return points_;
  }  // in the last life
  [[nodiscard]] int lives() const noexcept { return lives_; }
  [[nodiscard]] bool died_in_recovery() const noexcept { return died_in_recovery_; }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& point_names() const { return names_; }
  /// Seen from outside in the last life: what became of each job.
  [[nodiscard]] const std::map<JobNumber, JobView>& over() const noexcept { return over_; }
  [[nodiscard]] std::vector<std::string>& violations() noexcept { return violations_; }
  /// Of every record that was written, and when.
  [[nodiscard]] std::uint64_t digest() const noexcept { return committed_.checksum; }
  [[nodiscard]] std::uint64_t records() const noexcept { return committed_.records; }
  [[nodiscard]] const std::deque<std::string>& log() const noexcept { return log_; }
  /// What the scheduler did to jobs, with the moment and without the names of attempts.
  [[nodiscard]] const std::vector<std::string>& acts() const noexcept { return acts_; }
  /// How often each fault struck, by its name and the kind of record that was written last.
  using Strikes = std::map<std::pair<std::string, std::string>, std::uint64_t>;
  [[nodiscard]] const Strikes& struck() const noexcept { return struck_; }
  /// How often the scheduler died, by point.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& deaths_at() const { return deaths_at_; }
  void count_fault(std::string_view what);
  /// Submits as root; the answer is kept as acknowledged.
  JobNumber submit(LiveService& service, JobSpec spec);
  /// Inside a step.
  [[nodiscard]] Why why(JobNumber job, bool may_see_all = true) const;
  [[nodiscard]] std::optional<std::string> refusal_of(const JobSpec& spec) const;
  /// Somebody was told that it is taken: it must never be lost, and a key is one job for ever.
  void acknowledge(const std::string& key, const Submitted& answer);

  [[nodiscard]] std::int64_t boot_micros() const override { return micros_; }
  [[nodiscard]] std::int64_t wall_micros() const override;
  [[nodiscard]] std::string boot_id() const override;

 private:
  struct Life;
  class WorldMessageQueue;
  class WorldJournal;
  class WorldPrograms;
  [[nodiscard]] bool begin_life();
  void make_supervisor(Life& life);
  void make_power(Life& life);
  void make_service(Life& life);
  void die();
  void note(std::string line);
  void handle(std::span<const Committed> records);
  void keep_act(const RecordBody& body);
  void check_recovered(const Life& life);
  void check_alive();
  void check_after_life(Life& life);
  void check_accounts(Life& life, const JobView& job);
  void check_policy(const Life& life);
  void check_engines(const Life& life);
  bool step(std::optional<std::int64_t> until);
  [[nodiscard]] TrainingChannel* training();
  void oversleep();
  void linger(std::string_view point);

  WorldOptions options_;
  Cluster cluster_;
  std::int64_t micros_ = 1'000'000;
  std::int64_t wall_offset_ = 0;
  std::uint64_t space_left_ = std::uint64_t{1} << 40U;
  int boots_ = 1;
  // The journal's note of when the last life began: by the boot clock and by the engine's.
  std::string last_boot_;
  std::pair<std::int64_t, Time> last_life_{};
  SimDisk disk_;
  SimHost host_;
  Rng rng_;
  Rng sleep_rng_;
  WildTraining training_;
  HonestTraining honest_;
  std::multimap<std::int64_t, ScriptStep> script_;
  std::unique_ptr<Life> life_;
  std::uint64_t points_ = 0;
  std::optional<std::uint64_t> crash_at_;
  CrashKind crash_kind_ = CrashKind::Kill;
  std::map<std::string, std::uint64_t> names_;
  std::map<std::pair<std::string, std::uint64_t>, ScriptStep> at_points_;
  int lives_ = 0;
  std::set<JobNumber> acknowledged_;
  std::map<std::string, JobNumber> keys_;
  std::map<JobNumber, Outcome> ended_seen_;  // ends that were told
  std::set<JobNumber> cancelled_;            // by somebody who was told so
  struct {
    std::uint64_t records = 0, checksum = 0;
  } committed_;  // and told
  Strikes struck_;
  std::map<std::string, std::uint64_t> deaths_at_;
  std::string dying_at_;
  bool is_recovering_ = false, died_in_recovery_ = false;
  std::deque<std::string> log_;
  std::vector<std::string> acts_;
  std::map<JobNumber, JobView> over_;
  std::vector<std::string> violations_;
  std::function<ProgramBehaviour(const std::string&, const std::string&)> program_;
  std::vector<std::string> asked_;
  std::set<std::string> machines_off_;
  std::map<std::string, double> on_their_way_;  // "resume n0": until when
};

[[nodiscard]] JobSpec spec_of(std::vector<std::string> command, std::int32_t gpus = 1);
inline const Caller kRoot{.user = "root", .uid = 0, .gid = 0, .role = Role::Admin};

}  // namespace berth::test
