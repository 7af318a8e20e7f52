//! The outcome as JUnit XML: a suite for each policy.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{CaseRun, Tested, explained};
use crate::Failure;

pub(super) fn report(tested: &[Tested]) -> Result<String, Failure> {
    let mut report = Report::new("jackfield policy test");
    report.set_time(tested.iter().map(|tested| tested.took).sum());
    report.add_test_suites(tested.iter().map(suite));
    report.to_string().map_err(Failure::failed)
}

fn suite(tested: &Tested) -> TestSuite {
    let mut suite = TestSuite::new(tested.name.as_str());
    suite.set_time(tested.took);
    match &tested.outcome {
        Ok(runs) => suite.add_test_cases(runs.iter().map(|run| case(&tested.name, run))),
        Err(why) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(first_line(why)).set_description(why.as_str());
            suite.add_test_case(TestCase::new("build and start", status))
        }
    };
    suite
}

fn case(policy: &str, run: &CaseRun) -> TestCase {
    let status = match &run.failure {
        None => TestCaseStatus::success(),
        Some(failure) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            // Colours, if there are any, are taken out by the writer.
            status.set_message(failure.to_string()).set_description(explained(failure));
            status
        }
    };
    let mut case = TestCase::new(run.name.as_str(), status);
    case.set_classname(policy).set_time(run.took);
    case
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
