// What placement inside and across servers costs, and what neighbours on a server cost: the figures
// of the measurement study, from the rate function with the catalogue's models.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "lab/reproduction.h"
#include "model/cluster.h"
#include "perf/rate_function.h"

namespace berth {

Result<Reproduced> reproduce_locality(const ReproduceOptions& options);

namespace {

struct Extreme {
  double times = 1;
  std::string what;
  void see(double candidate, std::string name) {
    if (candidate <= times) return;
    times = candidate;
    what = std::move(name);
  }
};

double iteration_at(const Profile& profile, std::int32_t gpus, Level level) {
  Conditions conditions;
  conditions.gpus = gpus;
  conditions.link = Links{}.at(level);
  return iteration_time(profile, conditions).total;
}

std::string percent(double times) { return fmt::format("{:.0f} %", 100 * (times - 1)); }

}  // namespace

Result<Reproduced> reproduce_locality(const ReproduceOptions&) {
  const ProfileSet& profiles = built_in_profiles();
  std::vector<double> inside_all;
  Extreme inside;
  Extreme across;
  Extreme beside;
  double least_across = 1e9;
  std::string least;
  // The first profile is the class default, which stands for no model.
  for (std::uint32_t i = 1; i < profiles.size(); ++i) {
    const Profile& profile = profiles[ProfileId{i}];
    const double pair = iteration_at(profile, 2, Level::Nvlink);
    inside_all.push_back(iteration_at(profile, 2, Level::Server) / pair);
    inside.see(inside_all.back(), profile.name);
    const double four = iteration_at(profile, 4, Level::Nvlink);
    const double spread = iteration_at(profile, 4, Level::CrossRack) / four;
    across.see(spread, profile.name);
    if (spread < least_across) {
      least_across = spread;
      least = profile.name;
    }
    for (std::uint32_t j = 1; j < profiles.size(); ++j) {
      BusPressure pressure{profile.bus};
      pressure.add_neighbour(profiles[ProfileId{j}].bus);
      beside.see(pressure.slowdown(),
                 fmt::format("{} beside {}", profile.name, profiles[ProfileId{j}].name));
    }
  }
  std::ranges::sort(inside_all);
  const double three_quarters = inside_all[inside_all.size() * 3 / 4];
  BusPressure full{1};
  full.add_neighbour(1);
  Reproduced result;
  result.setting =
      "rate function with default links (NVLink 130 GB/s, sockets 9 GB/s, across racks 2.5 GB/s), "
      "every model of the built-in catalogue";
  result.figures = {
      {"a bad pair of GPUs inside one server, two-GPU jobs", "up to 27 % slower",
       fmt::format("three quarters of the models lose at most {}; the worst {} ({})",
                   percent(three_quarters), percent(inside.times), inside.what),
       "the worst models have large gradients and short iterations; the study's models and links "
       "are "
       "not stated"},
      {"four GPUs spread over racks instead of one server", "depends on the model",
       fmt::format("{} ({}) to {} ({}) slower", percent(least_across), least, percent(across.times),
                   across.what),
       ""},
      {"two one-GPU jobs on different GPUs of one server", "up to 40 % slower",
       fmt::format("not reproduced: {} with the catalogue; {} if both used the whole bus alone",
                   percent(beside.times), percent(full.slowdown())),
       "the bus share of these models is not measured anywhere public: the catalogue has the class "
       "default, and the cap of the formula is the published figure itself"}};
  // A bad pair costs what was published, a neighbour on the server nothing.
  const bool both = inside.times >= 1.27 && beside.times >= 1.4;
  const bool either = inside.times >= 1.27 || beside.times >= 1.4;
  result.headline = {
      "up to 27 % by a bad pair of GPUs, up to 40 % by a neighbour",
      fmt::format("up to {}, up to {}", percent(inside.times), percent(beside.times)),
      both     ? Judgement::Reproduced
      : either ? Judgement::InShape
               : Judgement::Missed};
  return result;
}

}  // namespace berth
