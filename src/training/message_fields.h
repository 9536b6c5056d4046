// Every field of the messages between training code and scheduler: its key, its place and its
// limits.
#pragma once

#include <limits>

#include "training/message.h"
#include "wire/describe.h"

namespace berth {

// To the code.
struct Welcome {
  JobNumber job = 0;
  std::int32_t version = kTrainingProtocol;
};
struct TermsNote {
  std::int64_t sub_steps = 1;
  std::int64_t batch = 0;
  double cores = 0;
  std::int64_t memory_mib = 0;
};
struct CheckpointAsk {
  double deadline_seconds = 0;
  bool stop = false;
};
struct ResizeNote {
  std::int32_t gpus = 0;
};
struct TrainingError {
  std::string why;
};

namespace wire {

inline constexpr std::int64_t kMostIterations = std::int64_t{1} << 53;
inline constexpr std::int64_t kMostSmall = std::numeric_limits<std::int32_t>::max();
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

template <class T>
[[nodiscard]] constexpr auto count(T& value, std::int64_t most) noexcept {
  return within(value, std::int64_t{0}, most);
}
template <class T>
[[nodiscard]] constexpr auto positive(T& value) noexcept {
  return within(value, 0.0, kInfinite);
}

template <>
struct Names<Phase> {
  static constexpr std::string_view kName = "";
  static constexpr std::array kAll{std::pair{Phase::Training, std::string_view{"training"}},
                                   std::pair{Phase::Validation, std::string_view{"validation"}}};
};

template <>
struct Fields<Hello> {
  static constexpr std::string_view kName = "Hello";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("hello"));
    v("v", needed(count(m.version, kMostSmall)), "of the protocol");
    v("job", needed(count(m.job, kMostIterations)));
    v("token", m.token);
    v("rank", count(m.rank, kMostSmall));
    v("sdk", m.sdk);
    v("resizes", m.resizes, "it can go on with other devices");
  }
};

template <>
struct Fields<Report> {
  static constexpr std::string_view kName = "Report";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("report"));
    v("iteration", needed(count(m.iteration, kMostIterations)),
      "done since the training began, over all attempts");
    v("epoch", positive(m.epoch), "done, with fractions");
    v("loss", within(m.loss, -kInfinite, kInfinite), "of late; null if it is no number");
    v("seconds", positive(m.seconds), "spent training since the last report");
    v("batch", count(m.batch, kMostSmall), "samples per iteration and worker");
    v("samples", positive(m.samples), "since the last report, if not iterations x batch");
    v("sub_steps", count(m.sub_steps, kMostSmall), "micro-batches it makes of one");
    v("noise_scale", positive(m.noise_scale), "of the gradient, in samples");
    v("metrics", m.metrics);
  }
};

template <>
struct Fields<Checkpointed> {
  static constexpr std::string_view kName = "Checkpointed";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("checkpointed"));
    v("iteration", count(m.iteration, kMostIterations));
    v("path", m.path);
  }
};

template <>
struct Fields<Resized> {
  static constexpr std::string_view kName = "Resized";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("resized"));
    v("id", needed(count(m.id, kMostIterations)), "of the resize");
    v("done", m.done, "it has left all other devices; otherwise it cannot");
  }
};

template <>
struct Fields<PhaseNote> {
  static constexpr std::string_view kName = "Phase";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("phase"));
    v("phase", needed(m.phase), "what it does from now on");
  }
};

template <>
struct Fields<Bye> {
  static constexpr std::string_view kName = "Bye";
  template <class Message, class Visit>
  static void visit(Message&, Visit& v) {
    v("type", constant("bye"));
  }
};

template <>
struct Fields<Welcome> {
  static constexpr std::string_view kName = "Welcome";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("welcome"));
    v("v", m.version);
    v("job", m.job);
  }
};

template <>
struct Fields<TermsNote> {
  static constexpr std::string_view kName = "Terms";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("terms"));
    v("sub_steps", m.sub_steps);
    v("batch", if_any(m.batch));
    v("cores", if_any(m.cores));
    v("memory_mib", if_any(m.memory_mib));
  }
};

template <>
struct Fields<CheckpointAsk> {
  static constexpr std::string_view kName = "Checkpoint";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("checkpoint"));
    v("deadline_seconds", m.deadline_seconds);
    v("stop", m.stop, "leave once it is written");
  }
};

template <>
struct Fields<ResizeNote> {
  static constexpr std::string_view kName = "Resize";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("resize"));
    v("gpus", m.gpus, "after its next start");
  }
};

template <>
struct Fields<ResizeAsk> {
  static constexpr std::string_view kName = "ResizeNow";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    const std::size_t gpus = m.devices.size();
    v("type", constant("resize"));
    v("id", m.id, "answer with it");
    v("gpus", gpus);
    v("devices", m.devices, "of the machine");
    v("cores", if_any(m.cores), "absent: any");
    v("deadline_seconds", m.deadline_seconds);
  }
};

template <>
struct Fields<TrainingError> {
  static constexpr std::string_view kName = "TrainingError";
  template <class Message, class Visit>
  static void visit(Message& m, Visit& v) {
    v("type", constant("error"));
    v("why", m.why);
  }
};

}  // namespace wire

}  // namespace berth
