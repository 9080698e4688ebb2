"""`skillarena doctor`: whether this machine can run SkillArena, and what to do where it cannot."""
