// Rates relative to the reference placement: iteration time there over iteration time here. The
// formula is in rate_function.cpp; this file finds its conditions (level, link, speed, batch) for a
// job where it stands, and remembers answers, because policies ask the same again and again.

#include "perf/rate_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/digest.h"
#include "base/split.h"
#include "perf/opportunistic.h"

namespace berth {

namespace {

struct EffectName {
  std::string_view name;
  bool Effects::*member;
};
constexpr std::array<EffectName, 7> kEffectNames{{{"sharing", &Effects::sharing},
                                                  {"locality", &Effects::locality},
                                                  {"server", &Effects::server},
                                                  {"cpu", &Effects::cpu},
                                                  {"memory", &Effects::memory},
                                                  {"device", &Effects::device},
                                                  {"efficiency", &Effects::efficiency}}};

// By the profile if it has the type, else by the catalogue of devices.
double speed_of(const Profile& profile, const DeviceType& device) {
  const std::string name = plain_model_name(device.name);
  for (const auto& [type, speed] : profile.speeds) {
    if (plain_model_name(type) == name) return speed;
  }
  return device.speed;
}

}  // namespace

Result<Effects> parse_effects(std::string_view text) {
  if (text == "all") {
    return Effects{.sharing = true,
                   .locality = true,
                   .server = true,
                   .cpu = true,
                   .memory = true,
                   .device = true,
                   .efficiency = true};
  }
  Effects effects{.sharing = false};
  if (text == "none") return effects;
  for (const std::string_view name : split(text, ',')) {
    const auto found = std::ranges::find(kEffectNames, name, &EffectName::name);
    if (found == kEffectNames.end()) {
      return fail(fmt::format(
          "--effects: unknown effect '{}' (known: none, all, sharing, locality, server, cpu, "
          "memory, device, efficiency; joined by commas)",
          name));
    }
    effects.*found->member = true;
  }
  return effects;
}

std::string to_string(const Effects& effects) {
  std::string text;
  for (const EffectName& effect : kEffectNames) {
    if (!(effects.*effect.member)) continue;
    if (!text.empty()) text += ',';
    text += effect.name;
  }
  return text.empty() ? "none" : text;
}

RateModel::RateModel(ProfileSet profiles, const Cluster& cluster, Effects effects)
    : profiles_(std::move(profiles)),
      cluster_(&cluster),
      servers_(cluster),
      effects_(effects),
      level_of_size_(cluster.pools.size()),
      rack_size_(cluster.pools.size()) {
  for (std::uint32_t i = 0; i < profiles_.size(); ++i) {
    std::vector<double>& speeds = speeds_.emplace_back();
    for (const DeviceType& device : cluster.pools)
      speeds.push_back(speed_of(profiles_[ProfileId{i}], device));
  }
  std::vector<std::vector<std::int64_t>> racks(cluster.pools.size(),
                                               std::vector<std::int64_t>(cluster.racks.size()));
  std::vector<std::vector<bool>> seen(cluster.pools.size(), std::vector<bool>(servers_.size()));
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    racks[node.pool.value][node.rack.value] += node.gpus;
    const std::uint32_t build = servers_.build_of(NodeId{i});
    // Servers are built alike in thousands: each kind is looked at once.
    if (seen[node.pool.value][build]) continue;
    seen[node.pool.value][build] = true;
    auto& levels = level_of_size_[node.pool.value];
    const auto sizes = static_cast<std::size_t>(node.gpus) + 1;
    if (levels.size() < sizes) levels.resize(sizes, Level::CrossRack);
    for (std::int32_t gpus = 0; gpus <= node.gpus; ++gpus) {
      Level& best = levels[static_cast<std::size_t>(gpus)];
      best = std::min(best, servers_[build].lowest_level(gpus));
    }
  }
  for (std::size_t i = 0; i < racks.size(); ++i)
    rack_size_[i] = racks[i].empty() ? 0 : *std::ranges::max_element(racks[i]);
}

ProfileId RateModel::add(Profile profile, std::span<const PairSlowdown> pairs) {
  std::vector<double>& speeds = speeds_.emplace_back();
  for (const DeviceType& device : cluster_->pools) speeds.push_back(speed_of(profile, device));
  const ProfileId id = profiles_.append(std::move(profile));
  for (const PairSlowdown& pair : pairs) {
    if (pair.of) profiles_.set_slowdown(id, pair.other, *pair.of);
    if (pair.of_other) profiles_.set_slowdown(pair.other, id, *pair.of_other);
  }
  return id;
}

double RateModel::speed(ProfileId profile, PoolId pool) const noexcept {
  return effects_.device ? speeds_[profile.value][pool.value] : 1.0;
}

// As close together as the pool allows at all, on empty servers.
Level RateModel::best_level(PoolId pool, std::int32_t gpus) const noexcept {
  const auto& levels = level_of_size_[pool.value];
  if (static_cast<std::size_t>(gpus) < levels.size()) return levels[static_cast<std::size_t>(gpus)];
  return gpus <= rack_size_[pool.value] ? Level::Rack : Level::CrossRack;
}

namespace {

/// Nobody knows whether a job of an unknown model learns as well with another batch. So it keeps its
/// total batch on any number of devices, unless somebody has measured how such jobs scale.
bool keeps_whole_batch(const ProfileSet& profiles, const Standing& standing) {
  return standing.profile == ProfileSet::fallback() && standing.terms.batch == 0 &&
         standing.gpus != standing.wanted && standing.gpus > 0 &&
         profiles[standing.profile].measured.empty();
}

}  // namespace

Conditions RateModel::conditions(const Standing& standing) const noexcept {
  std::int32_t batch = batch_of(standing);
  if (keeps_whole_batch(profiles_, standing))
    batch = std::max(1, (batch * standing.wanted + standing.gpus / 2) / standing.gpus);
  const std::int32_t steps = std::max(1, standing.terms.sub_steps);
  const Level level = effects_.locality ? standing.level : best_level(standing.pool, standing.gpus);
  Conditions conditions;
  conditions.device_speed = speed(standing.profile, standing.pool);
  conditions.gpus = standing.gpus;
  conditions.link = cluster_->links.at(level);
  if (effects_.locality) conditions.link.bandwidth /= std::max(1, standing.link_jobs);
  if (effects_.cpu) conditions.cores = standing.terms.cores_milli / 1000.0;
  if (effects_.memory) conditions.host_memory_mib = standing.terms.host_memory_mib;
  conditions.phase = standing.phase;
  conditions.sub_batch = (batch + steps - 1) / steps;
  conditions.extra_steps = steps - 1;
  return conditions;
}

// Exact matches only: between two measured points the formula knows more than a guess.
const MeasuredTime* RateModel::measured(const Standing& standing) const noexcept {
  const Profile& profile = profiles_[standing.profile];
  // A measured time is of whole batches; accumulation changes it.
  if (profile.measured.empty() || standing.terms.sub_steps > 1) return nullptr;
  const std::int32_t batch = batch_of(standing);
  const std::string device = plain_model_name(cluster_->pools[standing.pool.value].name);
  const auto found = std::ranges::find_if(profile.measured, [&](const MeasuredTime& row) {
    return row.gpus == standing.gpus && row.level == standing.level && row.batch == batch &&
           plain_model_name(row.device) == device;
  });
  return found == profile.measured.end() ? nullptr : &*found;
}

IterationTime RateModel::iteration(const Standing& standing) const noexcept {
  const Conditions now = conditions(standing);
  IterationTime time = iteration_time(profiles_[standing.profile], now);
  // Measured alone on its links: with company there the formula is all there is.
  if (const MeasuredTime* row = measured(standing); row != nullptr && standing.link_jobs <= 1) {
    time.gpu = row->seconds;
    time.total = std::max({time.gpu, time.cpu, time.data});
  }
  return time;
}

double RateModel::compute_alone(const Standing& standing) const noexcept {
  Standing reference = standing;
  reference.gpus = standing.wanted;
  reference.link_jobs = 1;
  reference.terms = Terms{};
  const bool anywhere = standing.reference == kNoPool;
  if (!anywhere) reference.pool = standing.reference;
  reference.level = best_level(reference.pool, reference.gpus);
  double before = iteration(reference).total;
  if (anywhere && effects_.device) {  // the traced duration stands for a V100
    Conditions v100 = conditions(reference);
    v100.device_speed = 1;
    before = iteration_time(profiles_[standing.profile], v100).total;
  }
  const double now = iteration(standing).total;
  const double first = 1.0 * standing.wanted * own_batch(standing);
  const double batch =
      keeps_whole_batch(profiles_, standing) ? first : 1.0 * standing.gpus * batch_of(standing);
  const bool worth_less = effects_.efficiency || standing.terms.batch > 0;
  return before / now * (batch / first) *
         (worth_less ? efficiency(standing.noise, first, batch) : 1.0);
}

double RateModel::alone(const Standing& standing) const {
  const auto [entry, is_new] = known_.try_emplace(standing, 0.0);
  if (is_new) entry->second = compute_alone(standing);
  return entry->second;
}

/// Stage by stage with the others, in the best ordering: one iteration of each per round.
double RateModel::interleaved(ProfileId of, std::span<const CoRunner> others) const noexcept {
  std::array<StageTimes, kMaxInterleaved> group;
  std::size_t size = 0;
  group[size++] = stages_of(profiles_[of]);
  for (const CoRunner& other : others) group[size++] = stages_of(profiles_[other.profile]);
  const double round = best_interleaving({group.data(), size}).seconds;
  return std::min(1.0, iteration_of(group[0]) / (round * profiles_.interleave_overhead().of(size)));
}

/// The rate of a guaranteed job with guests beside it, or of a guest on what the guaranteed jobs
/// leave.
double RateModel::as_guest_or_host(ProfileId of, const Terms& terms, PoolId pool,
                                   std::span<const CoRunner> others) const noexcept {
  const Interference model;
  double guaranteed = 0;  // compute the guaranteed jobs want
  double wanted = 0;      // and the opportunistic ones
  double issued = 0;      // and how much of that they may ask for
  for (const CoRunner& other : others) {
    const double busy = profiles_[other.profile].gpu_utilisation;
    const bool is_guest = other.terms.mode == ShareMode::Opportunistic;
    (is_guest ? wanted : guaranteed) += busy;
    if (is_guest) issued += busy * other.terms.throttle_milli / 1000;
  }
  const double mine = profiles_[of].gpu_utilisation;
  if (terms.mode == ShareMode::Guaranteed) return 1 / guaranteed_slowdown(mine, issued, model);
  const std::int32_t needed = memory_mib(of, 0, {});
  const double overflow_mib = needed - memory_mib(of, 0, terms);
  const double iteration_seconds = iteration({.profile = of, .pool = pool}).total;
  return opportunistic_speed(terms.throttle_milli / 1000.0, guaranteed, wanted + mine) /
         overflow_factor(overflow_mib * 1048576, iteration_seconds, model);
}

double RateModel::beside(ProfileId of, const Terms& terms, PoolId pool,
                         std::span<const CoRunner> others) const noexcept {
  if (!effects_.sharing) return 1;
  if (terms.mode == ShareMode::Guaranteed || terms.mode == ShareMode::Opportunistic)
    return as_guest_or_host(of, terms, pool, others);
  if (others.empty()) return 1;
  if (terms.mode == ShareMode::Interleaved && others.size() < kMaxInterleaved)
    return interleaved(of, others);
  double times = 1;
  for (const CoRunner& other : others) times *= profiles_.slowdown(of, other.profile);
  return 1 / times;
}

// Of one worker with its sub-batch; a cap that the scheduler set is all it may take.
std::int32_t RateModel::memory_mib(ProfileId profile, std::int32_t batch,
                                   const Terms& terms) const noexcept {
  const Profile& known = profiles_[profile];
  const std::int32_t own = batch > 0 ? batch : known.batch;
  const std::int32_t whole = terms.batch > 0 ? terms.batch : own;
  const std::int32_t steps = std::max(1, terms.sub_steps);
  const double needed = std::ceil(known.memory_mib((whole + steps - 1) / steps));
  const auto mib = static_cast<std::int32_t>(std::clamp(needed, 0.0, 1e9));
  return terms.memory_limit_mib > 0 ? std::min(mib, terms.memory_limit_mib) : mib;
}

std::size_t RateModel::Hash::operator()(const Standing& standing) const noexcept {
  const auto word = [](std::int32_t high, std::int32_t low) {
    return (std::uint64_t{static_cast<std::uint32_t>(high)} << 32U) |
           static_cast<std::uint32_t>(low);
  };
  Digest digest;
  digest.add((std::uint64_t{standing.profile.value} << 32U) | standing.pool.value);
  digest.add((std::uint64_t{standing.reference.value} << 32U) |
             (std::uint64_t{static_cast<std::uint32_t>(standing.link_jobs)} << 8U) |
             static_cast<std::uint64_t>(standing.level));
  digest.add(word(standing.gpus, standing.wanted));
  digest.add(static_cast<std::uint64_t>(standing.phase));
  digest.add(word(standing.batch, standing.terms.sub_steps));
  digest.add(word(standing.terms.cores_milli, standing.terms.host_memory_mib));
  digest.add(word(standing.terms.batch, standing.noise));
  return digest.value();
}

}  // namespace berth
