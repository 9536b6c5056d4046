// Why a job waits (docs/formats/why.md): made by the scheduler, in a copy of itself, told to
// people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "wire/describe.h"
#include "wire/view_fields.h"

namespace berth {

/// One number of a reason, as programs read it: a count, a measure, or the name of something.
using WhyNumber = std::variant<std::int64_t, double, std::string>;
using WhyNumbers = std::vector<std::pair<std::string, WhyNumber>>;

struct WhyReason {
  std::string kind;  // the gate: "capacity", "order", "hold" …
  std::string text;  // with numbers
  WhyNumbers numbers{};
  std::vector<std::string> entities{};
  std::string fix{};                    // what opens it, with the command; empty: only time does
  std::string who = "nobody";           // can change it: user (the job's), operator, admin
  std::string when = "now";             // never, now, until
  std::optional<std::int64_t> until{};  // Unix microseconds
  bool sole = false;                    // without it alone the job would start now
};

struct Why {
  JobNumber job = 0;
  LiveState state{};
  std::string summary;
  std::vector<WhyReason> reasons;
  std::vector<std::string> would_start;
  std::size_t place = 0, of = 0;  // in the policy's order, of those that wait
  std::string user{};             // whose job it is: the one that `who` calls user
  bool is_yours = false;          // of whoever asks
  std::int64_t age_seconds = 0;   // of the answer
};

/// What would become of a request if it were submitted now.
struct Foreseen {
  JobNumber job = 0;  // the number it would get if nobody else came first
  bool starts_now = false;
  std::string queue{};
  std::vector<std::string> nodes{};  // where, as far as there is no choice
  std::int32_t gpus = 0, cpus = 0;
  std::int64_t time_limit = 0;  // seconds; 0: none
  std::string summary{};
  std::vector<WhyReason> reasons{};  // what would keep it waiting
  std::size_t place = 0, of = 0;
  std::vector<std::string> notes{};
};

namespace wire {

inline constexpr std::array<std::string_view, 4> kWhoCan{"nobody", "user", "operator", "admin"};
inline constexpr std::array<std::string_view, 3> kWhyWhen{"never", "now", "until"};

template <>
struct Fields<WhyReason> {
  static constexpr std::string_view kName = "WhyReason";
  template <class Reason, class Visit>
  static void visit(Reason& r, Visit& v) {
    v("kind", r.kind, "what holds it back: capacity, order, hold …");
    v("text", r.text, "for people, with numbers");
    v("numbers", r.numbers, "the same numbers for programs");
    v("entities", r.entities, "jobs and nodes it is about");
    v("fix", r.fix, "what opens it, with the command; empty: only time does");
    v("who", one_of(r.who, kWhoCan), "who can change it; user: the job's");
    v("when", one_of(r.when, kWhyWhen), "when it can be satisfied");
    v("until", r.until, "Unix microseconds");
    v("sole", r.sole, "without it alone the job would start now");
  }
};

template <>
struct Fields<Why> {
  static constexpr std::string_view kName = "Why";
  static constexpr std::string_view kMeaning =
      "every reason that holds the job back (docs/formats/why.md)";
  template <class Answer, class Visit>
  static void visit(Answer& w, Visit& v) {
    v("job", w.job);
    v("state", w.state);
    v("summary", w.summary);
    v("reasons", w.reasons);
    v("would_start", w.would_start, "changes that would let it start");
    v("place", w.place, "in the policy's order; 0: it has none");
    v("of", w.of, "of so many that wait");
    v("user", w.user, "whose job it is");
    v("yours", w.is_yours);
    v("age_seconds", w.age_seconds);
  }
};

template <>
struct Fields<Foreseen> {
  static constexpr std::string_view kName = "Foreseen";
  static constexpr std::string_view kMeaning = "what would become of a request; nothing was made";
  template <class Answer, class Visit>
  static void visit(Answer& f, Visit& v) {
    v("job", f.job, "the number it would get if nobody else came first");
    v("starts_now", f.starts_now);
    v("queue", f.queue);
    v("nodes", f.nodes, "where, as far as there is no choice");
    v("gpus", f.gpus);
    v("cpus", f.cpus);
    v("time_limit", f.time_limit, "seconds; 0: none");
    v("summary", f.summary);
    v("reasons", f.reasons, "what would keep it waiting");
    v("place", f.place, "in the policy's order; 0: it has none");
    v("of", f.of, "of so many that wait");
    v("notes", f.notes);
  }
};

}  // namespace wire

}  // namespace berth
