//! Builds a policy folder into a component.
