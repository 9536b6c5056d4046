// Who may be named: as whom jobs run, whom tokens stand for, which group pays. Every way by which
// one person could run code as another is tried here.
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/live_world.h"
#include "support/temporary_directory.h"

namespace berth::test::identity_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// root and www-data are the system's, nobody is nobody's; ann's primary group is staff.
Result<std::optional<MachineUser>> on_this_machine(const std::string& name) {
  static const std::map<std::string, MachineUser> users{
      {"root", {0, "root", {"root"}}},
      {"toor", {0, "root", {"root"}}},
      {"www-data", {33, "www-data", {"www-data"}}},
      {"nobody", {65'534, "nogroup", {"nogroup"}}},
      {"ann", {5'001, "staff", {"staff", "vision", "video"}}},
      {"bob", {5'002, "staff", {"staff"}}},
      {"op", {5'003, "op", {"op"}}},
      {"chief", {5'004, "chief", {"chief"}}}};
  if (name == "slow") return fail("the directory does not answer");
  const auto found = users.find(name);
  return found == users.end() ? std::nullopt : std::optional(found->second);
}

const Caller kAnn{.user = "ann", .uid = 5'001, .gid = 1, .role = Role::User};
const Caller kBob{.user = "bob", .uid = 5'002, .gid = 1, .role = Role::User};
const Caller kOp{.user = "op", .uid = 5'003, .gid = 1, .role = Role::Operator};
const Caller kChief{.user = "chief", .uid = 5'004, .gid = 1, .role = Role::Admin};
const Caller kDaemonUser{.user = "www-data", .uid = 33, .gid = 33, .role = Role::User};

Caller by_token(Caller caller) {
  caller.uid = caller.gid = kNoUid;
  return caller;
}

class Identities : public ::testing::Test {
 protected:
  WorldOptions options() {
    WorldOptions options;
    options.service.admins = {"chief"};
    options.service.operators = {"op"};
    options.service.identity.lookup = on_this_machine;
    options.service.identity.groups = rules;
    return options;
  }
  void with(const std::function<void(LiveService&)>& body) {
    LiveWorld world{options()};
    bool done = false;
    world.at(1, [&](LiveService& service) {
      body(service);
      done = true;
      static_cast<void>(service.act(kRoot, Verb::Cancel, {.states = {}}, "", 0));
    });
    world.run();
    EXPECT_TRUE(done);
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
  }
  GroupRules rules;
};

std::string submit(LiveService& service, const Caller& caller, const std::string& user,
                   const std::string& group = "") {
  JobSpec spec = spec_of({"run", "1"});
  spec.user = user;
  spec.group = group;
  spec.hold = true;
  const auto answer = service.submit(caller, spec);
  return answer ? "ok" : answer.error().messages.front();
}

FaultKind kind_of_refusal(LiveService& service, const Caller& caller, const std::string& user) {
  JobSpec spec = spec_of({"run", "1"});
  spec.user = user;
  const auto answer = service.submit(caller, spec);
  EXPECT_FALSE(answer) << caller.user << " as " << user;
  return answer ? FaultKind::BadRequest : answer.error().kind;
}

TEST_F(Identities, NamingSomebodyElseIsForAdmins) {
  with([](LiveService& service) {
    EXPECT_EQ(submit(service, kAnn, ""), "ok");
    EXPECT_EQ(submit(service, kAnn, "ann"), "ok");
    EXPECT_EQ(submit(service, kOp, "op"), "ok");
    EXPECT_EQ(submit(service, kChief, "ann"), "ok");
    EXPECT_EQ(submit(service, by_token(kChief), "ann"), "ok");
    EXPECT_EQ(submit(service, by_token(kAnn), "ann"), "ok");
    for (const Caller& caller : {kAnn, kOp, by_token(kOp)})
      EXPECT_EQ(kind_of_refusal(service, caller, "bob"), FaultKind::Forbidden) << caller.user;
    EXPECT_EQ(kind_of_refusal(service, kChief, "ghost"), FaultKind::Impossible);
    EXPECT_EQ(kind_of_refusal(service, kChief, "slow"), FaultKind::Unavailable);
  });
}

TEST_F(Identities, NobodyIsNamedAsAnAccountOfTheSystem) {
  with([](LiveService& service) {
    EXPECT_EQ(submit(service, kDaemonUser, ""), "ok") << "because the kernel says it is itself";
    for (const Caller& caller : {kRoot, kChief, by_token(kRoot), by_token(kChief)}) {
      for (const char* name : {"www-data", "nobody"})
        EXPECT_EQ(kind_of_refusal(service, caller, name), FaultKind::Forbidden) << name;
    }
    EXPECT_EQ(kind_of_refusal(service, by_token(kDaemonUser), "www-data"), FaultKind::Forbidden);
  });
}

TEST_F(Identities, RootIsNamedByRootAtTheSocketAlone) {
  with([](LiveService& service) {
    EXPECT_EQ(submit(service, kRoot, ""), "ok");
    EXPECT_EQ(submit(service, kRoot, "root"), "ok");
    for (const Caller& caller : {kAnn, kOp, kChief, by_token(kRoot), by_token(kChief)}) {
      for (const char* name : {"root", "toor"})
        EXPECT_EQ(kind_of_refusal(service, caller, name), FaultKind::Forbidden) << caller.user;
    }
    EXPECT_EQ(kind_of_refusal(service, by_token(kRoot), ""), FaultKind::Forbidden);
  });
}

// What a job runs, with what around it, and which files are opened in its owner's name.
TEST_F(Identities, AnOperatorChangesHowAJobIsTreatedNotWhatItRuns) {
  with([](LiveService& service) {
    const auto add = [&](const Caller& caller) {
      JobSpec spec = spec_of({"run", "1"});
      spec.user.clear();
      spec.hold = true;
      return service.submit(caller, spec)->first;
    };
    const JobNumber of_ann = add(kAnn), of_root = add(kRoot);
    const auto refused = [&](const Caller& caller, JobNumber job, const std::string& changes) {
      const auto changed = service.change(caller, job, changes);
      EXPECT_FALSE(changed) << caller.user << " " << changes;
      EXPECT_EQ(changed ? FaultKind::Conflict : changed.error().kind, FaultKind::Forbidden);
    };
    const std::vector<std::string> code{R"({"command":["id"]})",
                                        R"({"script":"#!/bin/sh\nid\n"})",
                                        R"({"workdir":"/tmp"})",
                                        R"({"env":{"LD_PRELOAD":"/tmp/x.so"}})",
                                        R"({"input":"/etc/hosts"})",
                                        R"({"output":"/home/ann/.ssh/id_rsa"})",
                                        R"({"error":"/x"})",
                                        R"({"open_mode":"append"})",
                                        R"({"name":"../x"})",
                                        R"({"tasks":2})",
                                        R"({"priority":1,"command":["id"]})"};
    for (const std::string& changes : code) {
      refused(kOp, of_ann, changes);
      refused(by_token(kOp), of_ann, changes);
      refused(kBob, of_ann, changes);
      refused(kChief, of_root, changes);
      refused(by_token(kRoot), of_root, changes);
    }
    EXPECT_TRUE(service.change(kOp, of_ann, R"({"priority":-5,"time_limit":60,"comment":"late"})"));
    EXPECT_TRUE(service.change(kAnn, of_ann, R"({"command":["run","2"]})"));
    EXPECT_TRUE(service.change(kChief, of_ann, R"({"command":["run","3"]})"));
    EXPECT_TRUE(service.change(kRoot, of_root, R"({"command":["run","2"]})"));
    EXPECT_EQ(service.job(kRoot, of_ann)->spec->command, (std::vector<std::string>{"run", "3"}));
  });
}

TEST_F(Identities, TokensForOthersAreMadeByAdmins) {
  with([](LiveService& service) {
    int count = 0;
    const auto make = [&](const Caller& caller, const std::string& user, Role role) {
      TokenView asked;
      asked.name = fmt::format("t{}", ++count);
      asked.user = user;
      asked.role = role;
      const auto made = service.make_token(caller, asked);
      EXPECT_TRUE(made || made.error().kind == FaultKind::Forbidden);
      return made.value_or("");
    };
    EXPECT_NE(make(kAnn, "", Role::User), "");
    EXPECT_NE(make(kChief, "ann", Role::User), "");
    EXPECT_NE(make(kChief, "grafana", Role::User), "") << "a name that is no account reads only";
    EXPECT_NE(make(kRoot, "root", Role::Admin), "");
    for (const Role role : {Role::Operator, Role::Admin}) EXPECT_EQ(make(kAnn, "ann", role), "");
    EXPECT_EQ(make(kOp, "ann", Role::User), "");
    EXPECT_EQ(make(kOp, "op", Role::Admin), "");
    for (const Caller& caller : {kChief, by_token(kRoot)}) {
      EXPECT_EQ(make(caller, "toor", Role::User), "");
      EXPECT_EQ(make(caller, "www-data", Role::User), "");
    }
    EXPECT_EQ(make(kChief, "root", Role::User), "");
    // It reads, and runs nothing.
    const auto grafana = service.caller_of(make(kChief, "grafana", Role::User));
    ASSERT_TRUE(grafana);
    EXPECT_EQ(kind_of_refusal(service, *grafana, ""), FaultKind::Impossible);
    const auto root = service.caller_of(make(kRoot, "", Role::Admin));
    ASSERT_TRUE(root);
    EXPECT_EQ(root->role, Role::Admin);
    EXPECT_EQ(kind_of_refusal(service, *root, ""), FaultKind::Forbidden);
  });
}

// op's token says operator; who is no longer one has it no more.
TEST_F(Identities, ATokenOfOnesOwnIsWorthNoMoreThanItsOwner) {
  std::string own, given;
  WorldOptions options = this->options();
  LiveWorld world{options};
  world.at(1, [&](LiveService& service) {
    TokenView asked{.name = "mine", .user = "", .role = Role::Operator};
    own = service.make_token(kOp, asked).value_or("");
    asked = {.name = "given", .user = "ann", .role = Role::Operator};
    given = service.make_token(kChief, asked).value_or("");
    EXPECT_EQ(service.caller_of(own)->role, Role::Operator);
    // The same journal, read by a scheduler that was told of fewer operators.
    const Caller was{.user = "former", .uid = 5'009, .gid = 1, .role = Role::Operator};
    asked = {.name = "theirs", .user = "", .role = Role::Operator};
    const std::string former = service.make_token(was, asked).value_or("");
    EXPECT_EQ(service.caller_of(former)->role, Role::User);
    EXPECT_EQ(service.caller_of(given)->role, Role::Operator) << "because an admin said so";
  });
  world.run();
  EXPECT_NE(own, "");
  EXPECT_NE(given, "");
}

// --- groups

std::string group_of(LiveService& service, const Caller& caller, const std::string& group) {
  JobSpec spec = spec_of({"run", "1"});
  spec.user.clear();
  spec.group = group;
  spec.hold = true;
  const auto answer = service.submit(caller, spec);
  if (!answer) {
    EXPECT_EQ(answer.error().kind, FaultKind::Forbidden);
    return "refused: " + answer.error().messages.front();
  }
  return service.job(kRoot, answer->first)->spec->group;
}

void share(LiveService& service, const std::string& group, std::vector<std::string> members = {}) {
  ShareView view{.kind = "group", .name = group, .gpu_limit = 1};
  view.members = std::move(members);
  ASSERT_TRUE(service.set_share(kChief, view));
}

TEST_F(Identities, AUserMayUseOnlyAGroupThatSomebodyGaveHim) {
  with([](LiveService& service) {
    EXPECT_EQ(group_of(service, kAnn, "vision"), "vision");
    EXPECT_EQ(group_of(service, kAnn, "invented"),
              "refused: group: ann may not use 'invented' (may use: staff, video, vision)");
    EXPECT_THAT(group_of(service, kBob, "vision"), HasSubstr("refused"));
    EXPECT_THAT(group_of(service, kOp, "vision"), HasSubstr("refused"));
    EXPECT_EQ(group_of(service, kChief, "invented"), "invented") << "because an admin may";
    share(service, "nlp", {"bob"});
    EXPECT_EQ(group_of(service, kBob, "nlp"), "nlp");
    EXPECT_THAT(group_of(service, kAnn, "nlp"), HasSubstr("refused"));
  });
}

// A limit would be no limit if its users could leave it by saying nothing, or something else.
TEST_F(Identities, WhoHasAGroupWithAShareUsesSuchAGroup) {
  with([](LiveService& service) {
    EXPECT_EQ(group_of(service, kAnn, ""), "") << "because no group of hers has a share";
    share(service, "vision");
    EXPECT_EQ(group_of(service, kAnn, ""), "vision");
    EXPECT_EQ(group_of(service, kBob, ""), "");
    EXPECT_THAT(group_of(service, kAnn, "staff"), HasSubstr("(may use: vision)"));
    share(service, "staff");  // her primary group comes first, and bob's only one
    EXPECT_EQ(group_of(service, kAnn, ""), "staff");
    EXPECT_EQ(group_of(service, kAnn, "vision"), "vision");
    EXPECT_EQ(group_of(service, kBob, ""), "staff");
  });
}

TEST_F(Identities, TheConfigurationGivesGroupsAndTheFirstIsTheDefault) {
  rules.users = {{"bob", {"nlp", "vision"}}};
  rules.from_unix = false;
  with([](LiveService& service) {
    EXPECT_EQ(group_of(service, kBob, ""), "nlp");
    EXPECT_EQ(group_of(service, kBob, "vision"), "vision");
    EXPECT_THAT(group_of(service, kBob, "staff"), HasSubstr("refused"));
    EXPECT_THAT(group_of(service, kAnn, "vision"), HasSubstr("(may use: none)"));
    EXPECT_EQ(group_of(service, kAnn, ""), "");
  });
}

TEST_F(Identities, AnyGroupWhereTheConfigurationSaysSo) {
  rules.any = true;
  with([](LiveService& service) {
    share(service, "vision");
    EXPECT_EQ(group_of(service, kAnn, "invented"), "invented");
    EXPECT_EQ(group_of(service, kAnn, ""), "");
  });
}

TEST_F(Identities, AChangeLeavesALimitNoMoreThanASubmitDoes) {
  with([](LiveService& service) {
    share(service, "vision");
    JobSpec spec = spec_of({"run", "1"});
    spec.user.clear();
    spec.hold = true;
    const JobNumber job = service.submit(kAnn, spec)->first;
    for (const char* changes : {R"({"group":"staff"})", R"({"group":"invented"})"}) {
      EXPECT_FALSE(service.change(kAnn, job, changes)) << changes;
      EXPECT_FALSE(service.change(kOp, job, changes)) << changes;
    }
    EXPECT_TRUE(service.change(kAnn, job, R"({"group":"","priority":-1})"));
    EXPECT_EQ(service.job(kAnn, job)->spec->group, "vision");
    EXPECT_EQ(service.job(kAnn, job)->spec->priority, -1);
    EXPECT_TRUE(service.change(kChief, job, R"({"group":"staff"})"));
    EXPECT_EQ(service.job(kAnn, job)->spec->group, "staff");
  });
}

TEST(MachineUsers, TheFirstNumberOfPeopleIsInLoginDefs) {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/login.defs";
  EXPECT_EQ(first_user_number(file), 1000U);
  std::ofstream(file) << "# UID_MIN 7\nSYS_UID_MIN 100\nUID_MIN\t\t 500\n";
  EXPECT_EQ(first_user_number(file), 500U);
}

TEST(MachineUsers, AreFoundByName) {
  const auto root = find_machine_user("root");
  ASSERT_TRUE(root && *root);
  EXPECT_EQ((*root)->uid, 0U);
  EXPECT_EQ((*root)->primary_group, "root");
  const auto ghost = find_machine_user("no-such-user-here");
  ASSERT_TRUE(ghost);
  EXPECT_FALSE(*ghost);
}

}  // namespace
}  // namespace berth::test::identity_tests
