// `berth slurm setup` and its undo on a site that keeps state: what is changed, what comes back, and
// that neither a failure nor a death at any step leaves something between.
#include "slurm/setup.h"

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/crash_point.h"
#include "slurm/fake_site.h"
#include "slurm/setup_status.h"

namespace berth::slurm {
namespace {

using test::FakeSite;

constexpr const char* kPlainConf = "ClusterName=x\nSchedulerParameters=bf_continue\nNodeName=n1";
constexpr const char* kLuaConf =
    "ClusterName=x\nJobSubmitPlugins=all_partitions,lua\nInclude more.conf\n";
constexpr const char* kSiteScript = "function slurm_job_submit() return 0 end\n";

/// A site without plugins, one with a script of its own, one whose script is not used.
std::unique_ptr<FakeSite> site_of(int kind) {
  auto site = std::make_unique<FakeSite>(kPlainConf);
  if (kind == 0) return site;
  if (kind == 1) site->write("slurm.conf", kLuaConf);
  site->write("more.conf", "SchedulerParameters=sched_interval=5\n");
  site->write("job_submit.lua", kSiteScript);
  ::chmod(site->path("job_submit.lua").c_str(), 0640);
  const auto done = site->run({"scontrol", "reconfigure"});
  EXPECT_EQ(done->exit, 0);
  return site;
}

Result<std::vector<std::string>> set_up(FakeSite& site, const SetupWishes& wishes) {
  BERTH_TRY(const auto plan, plan_setup(site, wishes));
  return apply_setup(site, plan);
}

UndoWishes undoing(const FakeSite& site) { return {.conf = site.conf()}; }

TEST(SlurmSetup, IsUndoneToTheByte) {
  for (const int kind : {0, 1, 2}) {
    const auto site = site_of(kind);
    ::chmod(site->conf().c_str(), 0604);
    const auto before = site->everything();
    const auto notes = set_up(*site, site->wishes());
    ASSERT_TRUE(notes) << notes.error().text();
    EXPECT_EQ(site->live_plugins, kind == 1 ? "all_partitions,lua" : "lua");
    EXPECT_EQ(site->live_parameters, kind == 1 ? "sched_interval=5,batch_sched_delay=0"
                                               : "bf_continue,batch_sched_delay=0");
    EXPECT_EQ(site->everything().at("slurm.conf").substr(0, 4), "604 ");  // its mode stays
    EXPECT_EQ(site->read("job_submit_site.lua").value_or(""), kind == 0 ? "" : kSiteScript);
    const std::string script = site->read("job_submit.lua").value_or("");
    // because a script that was not in force must not be put into force
    EXPECT_EQ(script.find("SITE = nil") == std::string::npos, kind == 1);
    const auto undone = undo_setup(*site, undoing(*site));
    ASSERT_TRUE(undone) << undone.error().text();
    EXPECT_EQ(site->everything(), before);
    EXPECT_EQ(site->live_plugins, kind == 1 ? "all_partitions,lua" : "");
    EXPECT_TRUE(site->jobs.empty());  // no probe is left
  }
}

TEST(SlurmSetup, APlanChangesNothingAndSaysEverything) {
  const auto site = site_of(0);
  const auto before = site->everything();
  const auto plan = plan_setup(*site, site->wishes());
  ASSERT_TRUE(plan);
  EXPECT_EQ(site->everything(), before);
  for (const char* part :
       {"Slurm 24.11.5", "job_submit_lua.so is there", "+Include berth.conf",
        "+JobSubmitPlugins=lua", "+SchedulerParameters=bf_continue,batch_sched_delay=0",
        "  scontrol reconfigure\n", "+function own.submit("})
    EXPECT_NE(plan->text().find(part), std::string::npos) << part;
}

TEST(SlurmSetup, EveryCommandThatFailsTakesEverythingBack) {
  for (const int kind : {0, 1, 2}) {
    for (int nth = 1;; ++nth) {
      const auto site = site_of(kind);
      const auto plan = plan_setup(*site, site->wishes());
      ASSERT_TRUE(plan);
      const auto before = site->everything();
      const std::size_t commands_before = site->log.size();
      site->fails_at = nth;
      const auto applied = apply_setup(*site, *plan);
      if (site->fails_at > 0) break;  // there are no more commands
      const std::string failed = site->log[commands_before + static_cast<std::size_t>(nth) - 1];
      if (failed == "scontrol reconfigure") {
        EXPECT_FALSE(applied);
        EXPECT_EQ(site->everything(), before) << failed;
      } else {
        // Asked again, or only less sure: a probe that could not be sent is no reason to go back.
        EXPECT_TRUE(applied) << failed;
      }
      ASSERT_LT(nth, 50);
    }
  }
}

TEST(SlurmSetup, ASlurmctldThatIsAwayOrIgnoresTheChangeTakesEverythingBack) {
  const auto site = site_of(1);
  const auto before = site->everything();
  site->ignores_script = true;
  const auto applied = set_up(*site, site->wishes());
  ASSERT_FALSE(applied);
  EXPECT_NE(applied.error().text().find("the script has no effect"), std::string::npos);
  EXPECT_NE(applied.error().text().find("everything was taken back"), std::string::npos);
  EXPECT_EQ(site->everything(), before);
  EXPECT_TRUE(site->jobs.empty());
}

/// Dies at the n-th crash point; whether there were so many.
template <class Work>
bool dies_at(int nth, Work work) {
  struct Death {};
  int left = nth;
  const CrashHook hook([&](std::string_view) {
    if (--left == 0) throw Death{};
  });
  try {
    work();
  } catch (const Death&) {
    return true;
  }
  return false;
}

TEST(SlurmSetup, ADeathAtEveryStepOfSetupIsUndone) {
  for (const Gate gate : {Gate::Lua, Gate::Qos}) {
    for (const int kind : {0, 1, 2}) {
      for (int nth = 1;; ++nth) {
        const auto site = site_of(kind);
        const auto before = site->everything();
        const std::string qos = site->qos_table();
        auto wishes = site->wishes();
        wishes.gate = gate;
        const bool died = dies_at(nth, [&] { (void)set_up(*site, wishes); });
        const auto undone = undo_setup(*site, undoing(*site));
        ASSERT_TRUE(undone) << nth << undone.error().text();
        EXPECT_EQ(site->everything(), before) << kind << " " << nth;
        EXPECT_EQ(site->qos_table(), qos) << nth;
        EXPECT_EQ(site->live_plugins, kind == 1 ? "all_partitions,lua" : "");
        EXPECT_TRUE(site->jobs.empty());
        if (!died) break;
        ASSERT_LT(nth, 50);
      }
    }
  }
}

TEST(SlurmSetup, ADeathAtEveryStepOfUndoIsFinished) {
  for (const Gate gate : {Gate::Lua, Gate::Qos}) {
    for (const int kind : {0, 1, 2}) {
      for (int nth = 1;; ++nth) {
        const auto site = site_of(kind);
        const auto before = site->everything();
        const std::string qos = site->qos_table();
        auto wishes = site->wishes();
        wishes.gate = gate;
        ASSERT_TRUE(set_up(*site, wishes));
        site->jobs.push_back({.id = 7, .admin_comment = "berth=held"});
        const bool died = dies_at(nth, [&] { (void)undo_setup(*site, undoing(*site)); });
        const auto again = undo_setup(*site, undoing(*site));
        EXPECT_TRUE(again || again.error().text().find("is not set up") != std::string::npos)
            << again.error().text();
        EXPECT_EQ(site->everything(), before) << kind << " " << nth;
        EXPECT_EQ(site->qos_table(), qos);
        EXPECT_GT(site->job(7)->priority, 0U);  // released
        if (!died) break;
        ASSERT_LT(nth, 50);
      }
    }
  }
}

TEST(SlurmSetup, ADeathWhileSettingsChangeIsUndoneToo) {
  for (int nth = 1;; ++nth) {
    const auto site = site_of(1);
    const auto before = site->everything();
    ASSERT_TRUE(set_up(*site, site->wishes()));
    auto other = site->wishes();
    other.lua.patience_seconds = 99;
    other.keeps_parameters = true;
    const bool died = dies_at(nth, [&] { (void)set_up(*site, other); });
    const auto undone = undo_setup(*site, undoing(*site));
    ASSERT_TRUE(undone) << undone.error().text();
    EXPECT_EQ(site->everything(), before) << nth;
    if (!died) break;
    ASSERT_LT(nth, 50);
  }
}

TEST(SlurmSetup, SettingsAreChangedInPlaceAndComeBackWhenThatFails) {
  const auto site = site_of(1);
  ASSERT_TRUE(set_up(*site, site->wishes()));
  EXPECT_TRUE(plan_setup(*site, site->wishes())->is_done);
  const auto first = site->everything();
  auto other = site->wishes();
  other.lua.patience_seconds = 99;
  site->ignores_script = true;
  EXPECT_FALSE(set_up(*site, other));
  EXPECT_EQ(site->everything(), first);
  site->ignores_script = false;
  ASSERT_TRUE(set_up(*site, other));
  EXPECT_NE(site->read("job_submit.lua")->find("PATIENCE = 99"), std::string::npos);
  EXPECT_EQ(site->read("job_submit_site.lua"), kSiteScript);
}

TEST(SlurmSetup, WhatPeopleChangedSinceIsNotThrownAway) {
  const auto site = site_of(1);
  const auto before = site->everything();
  ASSERT_TRUE(set_up(*site, site->wishes()));
  const std::string script = *site->read("job_submit.lua");
  site->write("job_submit.lua", script + "-- mine\n");
  const auto active = site->everything();
  const auto refused = undo_setup(*site, undoing(*site));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("+-- mine"), std::string::npos);
  EXPECT_EQ(site->everything(), active);
  auto forced = undoing(*site);
  forced.is_forced = true;
  ASSERT_TRUE(undo_setup(*site, forced));
  EXPECT_EQ(site->read("job_submit.lua.changed"), script + "-- mine\n");
  std::filesystem::remove(site->path("job_submit.lua.changed"));
  EXPECT_EQ(site->everything(), before);
}

TEST(SlurmSetup, LinesThatWereAddedBelowOursStay) {
  const auto site = site_of(0);
  ASSERT_TRUE(set_up(*site, site->wishes()));
  site->write("slurm.conf", *site->read("slurm.conf") + "NodeName=n2\n");
  ASSERT_TRUE(undo_setup(*site, undoing(*site)));
  EXPECT_EQ(site->read("slurm.conf"), std::string(kPlainConf) + "NodeName=n2\n");
}

TEST(SlurmSetup, ChangesOfTheSitesScriptSurviveUndo) {
  const auto site = site_of(1);
  ASSERT_TRUE(set_up(*site, site->wishes()));
  site->write("job_submit_site.lua", "-- newer\n");
  ASSERT_TRUE(undo_setup(*site, undoing(*site)));
  EXPECT_EQ(site->read("job_submit.lua"), "-- newer\n");
}

TEST(SlurmSetup, RefusesWhatItMustNotWrite) {
  const auto refusal = [](auto prepare) {
    const auto site = site_of(0);
    auto wishes = site->wishes();
    prepare(*site, wishes);
    const auto before = site->everything();
    const auto plan = plan_setup(*site, wishes);
    EXPECT_EQ(site->everything(), before);
    return plan ? std::string("accepted") : plan.error().text();
  };
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(refusal([](FakeSite& site, SetupWishes& wishes) {
             std::filesystem::create_symlink("slurm.conf", site.path("l.conf"));
             wishes.conf = site.path("l.conf");
           }),
           "symbolic link");
  contains(refusal([](FakeSite& site, SetupWishes&) {
             std::filesystem::create_symlink("elsewhere", site.path("job_submit.lua"));
           }),
           "symbolic link");
  contains(refusal([](FakeSite& site, SetupWishes&) { site.write("berth.conf", "x"); }),
           "not as setup wrote it");
  contains(refusal([](FakeSite& site, SetupWishes&) { site.write("job_submit_site.lua", "x"); }),
           "not from setup");
  contains(refusal([](FakeSite& site, SetupWishes&) { ::chmod(site.conf().c_str(), 0666); }),
           "everybody may write it");
  contains(refusal([](FakeSite& site, SetupWishes&) {
             std::filesystem::remove(site.path("job_submit_lua.so"));
           }),
           "job_submit_lua.so is not in");
  contains(refusal([](FakeSite&, SetupWishes& wishes) { wishes.lua.heartbeat = "beat"; }),
           "no full path");
  contains(refusal([](FakeSite& site, SetupWishes& wishes) {
             std::filesystem::create_directory(site.path("d"));
             wishes.lua.heartbeat = site.path("d");
           }),
           "no plain file");
  contains(refusal([](FakeSite& site, SetupWishes&) { site.is_down = true; }), "Unable to contact");
  contains(refusal([](FakeSite& site, SetupWishes& wishes) {
             site.enforce = "associations";
             wishes.gate = Gate::Qos;
           }),
           "AccountingStorageEnforce=limits,qos");
  if (::geteuid() == 0)
    contains(refusal([](FakeSite& site, SetupWishes&) {
               EXPECT_EQ(::chown(site.conf().c_str(), 12345, 12345), 0);
             }),
             "belongs to user 12345");
}

TEST(SlurmSetup, AnUndoWithoutSlurmctldGoesOnLater) {
  const auto site = site_of(1);
  const auto before = site->everything();
  ASSERT_TRUE(set_up(*site, site->wishes()));
  site->is_down = true;
  const auto undone = undo_setup(*site, undoing(*site));
  ASSERT_FALSE(undone);
  EXPECT_NE(undone.error().text().find("slurmctld has not read them"), std::string::npos);
  EXPECT_EQ(site->read("slurm.conf"), kLuaConf);
  EXPECT_EQ(site->read("job_submit.lua"), kSiteScript);
  site->is_down = false;
  ASSERT_TRUE(undo_setup(*site, undoing(*site)));
  EXPECT_EQ(site->everything(), before);
}

TEST(QosGate, EveryCommandThatFailsTakesEverythingBack) {
  for (int nth = 1;; ++nth) {
    const auto site = site_of(0);
    auto wishes = site->wishes();
    wishes.gate = Gate::Qos;
    const auto plan = plan_setup(*site, wishes);
    ASSERT_TRUE(plan);
    const auto before = site->everything();
    const std::string qos = site->qos_table();
    site->fails_at = nth;
    const auto applied = apply_setup(*site, *plan);
    if (site->fails_at > 0) {
      ASSERT_TRUE(applied);
      EXPECT_EQ(site->qos_table(), "berth| long|0 normal|0 ");
      break;
    }
    EXPECT_FALSE(applied);
    EXPECT_EQ(site->everything(), before) << nth;
    EXPECT_EQ(site->qos_table(), qos) << nth;
    ASSERT_LT(nth, 50);
  }
}

TEST(QosGate, IsOpenedAndShutAndUndoneToWhatWas) {
  const auto site = site_of(0);
  auto wishes = site->wishes();
  wishes.gate = Gate::Qos;
  wishes.lua.free_qos = {"free"};
  site->qos["free"] = "";
  ASSERT_TRUE(set_up(*site, wishes));
  EXPECT_EQ(site->qos_table(), "berth| free| long|0 normal|0 ");
  auto state = **load_state(site->conf());
  ASSERT_TRUE(set_qos_gate(*site, state, false));
  EXPECT_EQ(site->qos_table(), "berth| free| long|7 normal| ");
  EXPECT_TRUE((*load_state(site->conf()))->handed_back);
  ASSERT_TRUE(set_qos_gate(*site, state, true));
  EXPECT_EQ(site->qos_table(), "berth| free| long|0 normal|0 ");
  EXPECT_FALSE((*load_state(site->conf()))->handed_back);
  site->qos["long"] = "3";  // somebody's will
  ASSERT_TRUE(undo_setup(*site, undoing(*site)));
  EXPECT_EQ(site->qos_table(), "free| long|3 normal| ");
}

TEST(SetupState, WhatIsNotOursIsAnError) {
  EXPECT_FALSE(state_from("", "s"));
  EXPECT_FALSE(state_from("{}", "s"));
  EXPECT_FALSE(state_from(R"({"format": 2})", "s"));
  EXPECT_FALSE(state_from(R"({"format": 1, "phase": "x"})", "s"));
}

TEST(SetupStatus, TellsWhatDoesNotFit) {
  const auto site = site_of(1);
  EXPECT_FALSE(setup_status(*site, site->conf(), 100)->state);
  ASSERT_TRUE(set_up(*site, site->wishes()));
  site->write("heartbeat", "90\n");
  auto status = setup_status(*site, site->conf(), 100);
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->problems.empty()) << status->problems.front();
  EXPECT_EQ(status->heartbeat_age, 10);
  site->write("more.conf", "SchedulerParameters=sched_interval=6\n");
  site->write("job_submit.lua", "x");
  status = setup_status(*site, site->conf(), 100);
  EXPECT_EQ(status->problems.size(), 2U);
  site->is_down = true;
  EXPECT_EQ(setup_status(*site, site->conf(), 100)->version, "");
}

}  // namespace
}  // namespace berth::slurm
