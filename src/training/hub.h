// Where training code and scheduler talk: one Unix socket, one thread, idle unless somebody speaks.
// A peer speaks for a job if the kernel says that it is the job's user (or root) and it knows the
// token of the attempt that runs now, which only the attempt's environment holds.
//
// Nothing here is durable and nothing waits: a report that is lost is lost, code that says nothing
// runs just as well. Safe to call from any thread; the callbacks are called from the hub's own,
// without a lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "training/online_model.h"
#include "training/peer.h"
#include "training/progress.h"
#include "training/training_channel.h"
#include "training/training_history.h"

namespace berth {

struct HubOptions {
  std::string path;
  std::size_t most_connections = 1024;
  std::size_t most_per_user = 512;
  double hello_seconds = 10;  // who has not said hello by then is dropped
  PeerLimits peer = {};
};

/// The attempt of a job that runs now.
struct ExpectedAttempt {
  std::string token;
  std::uint32_t uid = 0;
  std::string model;  // for what is learned about it; may be empty
  std::int32_t gpus = 1;
  std::vector<std::int32_t> devices{};  // what it holds now, for code that can go on with others
  std::vector<std::int32_t> cores{};
  double iterations = 0;  // of the whole training; 0 = not said
};

struct HubCalls {
  /// Nothing: no such job, or it does not run.
  std::function<std::optional<ExpectedAttempt>(JobNumber)> expected;
  /// A job said something new; at most once a second for each.
  std::function<void(JobNumber, const TrainingFigures&)> changed = {};
  /// Code has answered a request for another size.
  std::function<void(JobNumber, const Resized&)> resized = {};
  /// More is known of how cores feed some job (take_changed()), or one came to another phase
  /// (take_phases()): at most once a second for each.
  std::function<void()> learned = {};
  /// Some job's progress is not what was to be expected: see take_progressed().
  std::function<void()> progressed = {};
  /// A job says what cannot be, and is not believed until its next attempt; or a line that makes no
  /// sense. Once for each attempt.
  std::function<void(JobNumber, std::string_view why)> nonsense = {};
};

class TrainingHub final : public TrainingChannel {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TrainingHub>> open(const HubOptions& options,
                                                                 HubCalls calls);
  ~TrainingHub() override;
  TrainingHub(const TrainingHub&) = delete;
  TrainingHub& operator=(const TrainingHub&) = delete;

  [[nodiscard]] std::optional<TrainingReport> report(JobNumber job) const override;
  void losses(JobNumber job, std::int64_t first, std::vector<double>& losses) const override;
  [[nodiscard]] bool has_saved(JobNumber job) const override;
  [[nodiscard]] Phase phase(JobNumber job) const override;
  [[nodiscard]] std::vector<std::pair<JobNumber, Phase>> take_phases() override;
  /// Its use of the machine looks like it. Counts only of code that never tells its phase.
  void see_phase(JobNumber job, Phase phase);
  void tell(JobNumber job, const Terms& terms) override;
  [[nodiscard]] std::optional<MeasuredProgress> progress(JobNumber job) const override;
  void conditions_changed(JobNumber job) override;
  void take_progressed(std::vector<JobNumber>& jobs) override;

  [[nodiscard]] bool is_listening(JobNumber job) const override;
  [[nodiscard]] bool can_resize(JobNumber job) const override;
  /// Whoever connects before it is answered is asked again.
  void ask_resize(JobNumber job, const ResizeAsk& ask) override;
  void ask_checkpoint(JobNumber job, double deadline_seconds, AfterCheckpoint then) override;
  /// The job will have another number of GPUs when it next starts.
  void announce_size(JobNumber job, std::int32_t gpus);
  /// The job is over.
  void forget(JobNumber job);
  /// Nothing: it has said nothing yet.
  [[nodiscard]] std::optional<TrainingFigures> view(JobNumber job) const;
  [[nodiscard]] std::size_t connections() const;

  /// See OnlineModel: what is known of cores survives the scheduler if somebody keeps it.
  void take_remembered(std::vector<std::pair<std::string, CorePoints>>& models);
  void recall(const std::string& model, CorePoints points, double age_seconds);

  // What was learned, see training/online_model.h.
  [[nodiscard]] std::vector<JobNumber> take_changed();
  [[nodiscard]] std::optional<std::int32_t> probe(JobNumber job, std::int32_t most);
  [[nodiscard]] std::optional<CpuCurve> curve(JobNumber job) const;
  [[nodiscard]] std::optional<double> seconds_per_iteration(JobNumber job, double cores) const;

 private:
  struct Job {
    TrainingHistory history;
    std::string token;         // of the attempt that spoke last
    std::int32_t speaker = 0;  // the lowest rank that has reported in this attempt
    bool has_speaker = false;
    std::optional<Terms> terms;
    std::optional<ResizeAsk> asked;  // of this attempt, not answered yet
    std::int32_t listeners = 0;
    std::int32_t resizers = 0;  // of these, who can go on with other devices
    ProgressMeter meter;
    double whole = 0;  // iterations of the training; 0 = not said
    struct {           // what the engine was told of its progress last
      double at = 0, iterations = 0, per_second = 0;
      bool anything = false;
    } passed_on;
    bool said_nonsense = false;  // in this attempt
    // Nothing: nobody knows. After a restart whoever decides may know it from before.
    std::optional<Phase> phase{}, phase_told{};
    bool tells_phases = false;
  };
  using PeerId = std::uint64_t;

  TrainingHub(HubOptions options, HubCalls calls, Descriptor listener);
  [[nodiscard]] Result<void> start();
  void run();
  [[nodiscard]] int milliseconds_to_sleep(double now) const;
  void welcome_newcomers(double now);
  void handle(PeerId id, std::uint32_t what, double now);
  /// False: the peer is to be dropped.
  [[nodiscard]] bool handle_line(Peer& peer, const std::string& line, double now);
  [[nodiscard]] bool handle_hello(Peer& peer, const Hello& hello, double now);
  void handle_report(Peer& peer, const Report& report, double now);
  void handle_resized(const Peer& peer, const Resized& resized);
  [[nodiscard]] bool complain(Peer& peer, std::string_view why);
  void post(JobNumber job, std::string line);
  void deliver();
  void drop(PeerId id);
  void drop_silent(double now);
  void watch(PeerId id, Peer& peer);
  void pass_on_news(double now);
  [[nodiscard]] static bool is_unexpected(const Job& job, double now);
  void note_nonsense(Job& job, JobNumber number, std::string why);
  void wake() const;

  const HubOptions options_;
  const HubCalls calls_;
  Descriptor listener_;
  Descriptor poller_;
  Descriptor waker_;

  // Of the hub's thread alone.
  std::map<PeerId, Peer> peers_;
  std::map<std::uint32_t, std::size_t> peers_of_;  // by user
  std::set<PeerId> strangers_;                     // have not said hello, oldest first
  PeerId next_peer_ = 2;
  std::uint64_t learned_told_ = 0;
  double passed_on_at_ = -1e9;                               // when news were last passed on
  std::vector<std::string> lines_;                           // scratch
  std::vector<std::pair<JobNumber, std::string>> nonsense_;  // to be told

  mutable std::mutex mutex_;
  std::map<JobNumber, Job> jobs_;
  mutable OnlineModel model_;
  std::set<JobNumber> news_;  // jobs that said something that was not passed on
  std::set<JobNumber> progressed_;
  std::vector<std::pair<JobNumber, std::string>> outbox_;
  std::vector<std::pair<JobNumber, Phase>> phases_;  // told, not taken yet
  std::size_t connections_ = 0;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace berth
