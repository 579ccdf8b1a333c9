"""The facts that a decision is made from: what a session did before, what lies around, and their form as JSON."""
